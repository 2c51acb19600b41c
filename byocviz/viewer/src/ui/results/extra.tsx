/** Plain data that a person put into the recording, listed by name as it is. */
import * as l from "../../data/lenient";
import { picture } from "../../data/results";
import { printable } from "../../draw/svg";
import { say } from "./parts";

export function Extra({ extra }: { extra: l.Raw }) {
  return (
    <>
      {Object.entries(extra).filter(([name]) => name !== "stops").slice(0, 60).map(([name, value], i) => (
        <section class="table-card" key={name} id={i === 0 ? "result-extra" : undefined} aria-label={say(name, 80)}>
          <header><h2>{say(name, 80)}</h2></header>
          <div class="pad"><Value name={name} value={value} depth={0} /></div>
        </section>
      ))}
    </>
  );
}

function Value({ name, value, depth }: { name: string; value: unknown; depth: number }) {
  if (value === null || typeof value !== "object") {
    const image = picture(value);
    if (image) return <img src={image} alt={say(name, 80)} />;
    const text = l.text(value, "–");
    return text.includes("\n")
      ? <pre class="block">{text.slice(0, 50_000).split("\n").map(printable).join("\n")}</pre> : <span>{say(text, 2000)}</span>;
  }
  if (depth > 5) return <span class="quiet">…</span>;
  const rows = Array.isArray(value) ? value : Object.entries(value as object).map(([k, v]) => ({ name: k, value: v as unknown }));
  if (Array.isArray(value) && rows.length && rows.every((one) => typeof one === "object" && one !== null && !Array.isArray(one))) {
    return <Grid rows={rows as l.Raw[]} depth={depth} />;
  }
  if (Array.isArray(value)) {
    return rows.every((one) => typeof one !== "object")
      ? <span class="mono">{say(rows.slice(0, 100).map((one) => l.text(one, "–")).join(", "), 3000)}</span>
      : <ul>{rows.slice(0, 200).map((one) => <li><Value name={name} value={one} depth={depth + 1} /></li>)}</ul>;
  }
  return (
    <dl class="facts">
      {Object.entries(value as object).slice(0, 200).map(([k, v]) => (
        <div key={k}><dt>{say(k, 60)}</dt><dd><Value name={k} value={v} depth={depth + 1} /></dd></div>
      ))}
    </dl>
  );
}

/** Rows of the same form; numbers of a column of times get a bar, so that they compare at a look. */
function Grid({ rows, depth }: { rows: l.Raw[]; depth: number }) {
  const columns = [...new Set(rows.slice(0, 50).flatMap((row) => Object.keys(row)))].slice(0, 14);
  const bar = columns.find((c) => /median|latency|_ms$|milliseconds|seconds/.test(c) && rows.every((row) => typeof row[c] === "number"));
  const most = bar ? Math.max(...rows.map((row) => Number(row[bar]) || 0)) : 0;
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Results table">
      <table>
        <thead><tr>{columns.map((c) => <th scope="col" class={rows.every((row) => typeof row[c] === "number") ? "num pad-th" : "pad-th"}>{say(c, 40)}</th>)}</tr></thead>
        <tbody>
          {rows.slice(0, 500).map((row) => (
            <tr>{columns.map((c) => (
              <td class={typeof row[c] === "number" ? "num" : ""}>
                {c === bar && most > 0 ? <span class="cell-bar"><span class="bar wide"><i style={{ width: `${(Number(row[c]) / most) * 100}%` }} /></span>{Number(row[c]).toPrecision(4)}</span> : <Value name={c} value={row[c] ?? null} depth={depth + 1} />}
              </td>
            ))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
