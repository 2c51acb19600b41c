/** What was found in each photo, drawn over it, for each variant. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { COLOURS, classColours, classKey, place, type Placed } from "../../data/boxes";
import { plural } from "../../data/format";
import type { Detected, Found, Photo } from "../../data/results";
import { Icon } from "../icons";
import { More } from "../pieces";
import { Card, Pick, Switch, Words, say, tiny } from "./parts";

/** Boxes drawn on one photo; more would hide it. */
const DRAWN = 100;

export function DetectionsCard({ photos }: { photos: Photo[] }) {
  const [at, setAt] = useState(0);
  const [variant, setVariant] = useState(0);
  const [mode, setMode] = useState<"one" | "all">("one");
  const colours = useMemo(() => classColours(photos), [photos]);
  const photo = photos[Math.min(at, photos.length - 1)];
  const now = Math.min(variant, photo.detected.length - 1);
  const several = photo.detected.length > 1;
  const begun = useRef(false);
  useEffect(() => {
    // Side by side the card takes the whole width, and so stands elsewhere.
    if (begun.current) document.getElementById("result-detections")?.scrollIntoView({ block: "nearest" });
    begun.current = true;
  }, [mode]);
  return (
    <Card id="detections" title="Detections"
      tools={several && <Switch label="Variants" value={mode} options={[["one", "one"], ["all", "side by side"]]} onChange={setMode} />}>
      {photos.length > 1 && (
        <div class="thumbs" role="group" aria-label="Photos">
          <More items={photos} first={12}>
            {(p, i) => (
              <button key={i} class={i === at ? "on" : ""} aria-pressed={i === at} onClick={() => setAt(i)}>
                {p.image && <img src={p.image} alt="" />}<span>{say(p.name || `photo ${i + 1}`, 24)}</span>
              </button>
            )}
          </More>
        </div>
      )}
      {photo.detected.length === 0 ? <Shot photo={photo} detected={null} first={null} colours={colours} /> : mode === "one" || !several ? (
        <>
          {several && <div class="pad"><Pick label="Variant" value={now} names={photo.detected.map((d) => d.variant || "?")} onChange={setVariant} /></div>}
          <Shot key={`${at} ${now}`} photo={photo} detected={photo.detected[now]} first={now > 0 ? photo.detected[0] : null} colours={colours} />
        </>
      ) : (
        <div class="shots">
          <More items={photo.detected} first={6}>
            {(d, i) => <Shot key={`${at} ${i}`} photo={photo} detected={d} first={i > 0 ? photo.detected[0] : null} colours={colours} titled />}
          </More>
        </div>
      )}
    </Card>
  );
}

function Shot({ photo, detected, first, colours, titled }: {
  photo: Photo; detected: Detected | null; first: Detected | null; colours: Map<string, number>; titled?: boolean;
}) {
  const [lit, setLit] = useState(-1);
  const found = detected?.found ?? [];
  const [frame, size] = useSize();
  const tags = useMemo(() => found.slice(0, DRAWN).map((f) => `${say(f.label || "?", 24)} ${score(f.score)}`), [found]);
  const placed = useMemo(() => place(found.slice(0, DRAWN), photo, size, tags), [found, photo, size, tags]);
  const colour = (f: Found) => COLOURS[colours.get(classKey(f)) ?? 0];
  const name = say(photo.name || "photo", 60);
  const words = found.slice(0, 20).map((f) => `${say(f.label, 40)} ${score(f.score)}`).join(", ") || "nothing";
  return (
    <figure class="shot">
      {titled && <figcaption><b><Words text={detected?.variant || "?"} limit={40} /></b></figcaption>}
      <div class="frame" ref={frame} style={{ aspectRatio: `${photo.width} / ${photo.height}`, maxWidth: `min(100%, calc(var(--shot, 62vh) * ${(photo.width / photo.height).toFixed(4)}))` }} role="img" aria-label={`${name}: ${words}`}>
        {photo.image ? <img src={photo.image} alt="" draggable={false} /> : <p class="no-photo">The photo itself was not kept.</p>}
        <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
          {order(placed, lit).map((i) => {
            const [l, t, r, b] = placed[i].box;
            const box = { x: l, y: t, width: r - l, height: b - t };
            return (
              <g key={i} class={lit < 0 ? "" : lit === i ? "lit" : "dim"}>
                <rect class="halo" {...box} /><rect class="edge" {...box} style={{ stroke: colour(found[i])[0] }} />
              </g>
            );
          })}
        </svg>
        {placed.map(({ tag }, i) => (
          <span key={i} aria-hidden="true" class={`tag-label ${lit < 0 ? "" : lit === i ? "lit" : "dim"}`}
            style={{
              [tag.right ? "right" : "left"]: `${((tag.right ? 1 - tag.x : tag.x) * 100).toFixed(2)}%`, top: `${(tag.y * 100).toFixed(2)}%`,
              background: colour(found[i])[0], color: colour(found[i])[1],
            }}>{say(found[i].label || "?", 24)} <b>{score(found[i].score)}</b></span>
        ))}
      </div>
      {detected && <Apart detected={detected} first={first} />}
      {detected && found.length === 0 && <p class="quiet">Nothing was found.</p>}
      <ul class="found" aria-label={`Found in ${name}`}>
        <More items={found.map((f, i) => ({ f, i }))} first={titled ? 5 : 8}>
          {({ f, i }) => (
            <li key={i}>
              <button class={lit === i ? "lit" : ""} onPointerEnter={() => setLit(i)} onPointerLeave={() => setLit(-1)} onFocus={() => setLit(i)} onBlur={() => setLit(-1)}
                onClick={() => setLit(i)}>
                <i style={{ background: colour(f)[0] }} aria-hidden="true" />
                <span class="label">{say(f.label || "?", 40)}</span>
                <span class="bar" aria-hidden="true"><i style={{ width: `${Math.max(0, Math.min(1, f.score ?? 0)) * 100}%` }} /></span>
                <b>{score(f.score)}</b>
                <span class="at quiet" title="left, top, right, bottom, in pixels of the photo">{f.box.map((v) => Math.round(v)).join(", ")}</span>
              </button>
            </li>
          )}
        </More>
      </ul>
      {found.length > DRAWN && <p class="quiet">The first {DRAWN} of {found.length} are drawn.</p>}
    </figure>
  );
}

/** The size of an element as it is drawn; labels keep theirs whatever it is. */
function useSize(): [RefObject<HTMLDivElement | null>, { width: number; height: number }] {
  const ref = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 560, height: 400 });
  useLayoutEffect(() => {
    const node = ref.current!;
    const read = () => {
      const { clientWidth: width, clientHeight: height } = node;
      if (width && height) setSize((now) => (now.width === width && now.height === height ? now : { width, height }));
    };
    read();
    const watch = new ResizeObserver(read);
    watch.observe(node);
    return () => watch.disconnect();
  }, []);
  return [ref, size];
}

function score(value: number | null): string {
  return value === null ? "?" : value.toFixed(3);
}

/** What is pointed at lies on top. */
function order(placed: Placed[], lit: number): number[] {
  const all = [...placed.keys()];
  return lit < 0 || lit >= all.length ? all : [...all.filter((i) => i !== lit), lit];
}

function Apart({ detected: d, first }: { detected: Detected; first: Detected | null }) {
  const to = first ? say(first.variant || "?", 40) : "";
  const differs = first !== null && d.max_score === null && (first.found.length > 0 || d.found.length > 0);
  return (
    <p class={`apart ${differs ? "bad" : "quiet"}`}>
      {first === null ? <>{plural(d.found.length, "detection")}; the others are compared to these.</> : differs
        ? <><Icon name="warn" /> Does not find the same things as {to}.</>
        : <>Against {to}: scores differ by at most <b>{tiny(d.max_score ?? 0)}</b>, sides of boxes by <b>{tiny(d.max_box ?? 0)} px</b>.</>}
      {d.note && !(differs && d.note.startsWith("other things")) && <> <Words text={d.note} limit={120} /></>}
    </p>
  );
}
