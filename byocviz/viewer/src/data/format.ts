/** How figures and names are written. Pure functions. */

export function shortOp(name: string): string {
  return name.replace(/^relax\./, "").replace(/^relay\./, "");
}

/** 12,345.6, as toLocaleString("en-US") has it, which takes 20 ms when it is first called. */
export function thousands(value: number): string {
  const [whole, part] = String(value).split(".");
  if (!/^-?\d+$/.test(whole)) return String(value);
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return part ? `${grouped}.${part}` : grouped;
}

/** The middle is what machine-made names can spare. */
export function clip(name: string, limit: number): string {
  if (name.length <= limit) return name;
  const head = Math.ceil((limit - 1) * 0.6);
  return `${name.slice(0, head)}…${name.slice(name.length - (limit - 1 - head))}`;
}

export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined) return "?";
  const size = Math.abs(value);
  if (size >= 1e12) return `${trim(value / 1e12)} T`;
  if (size >= 1e9) return `${trim(value / 1e9)} G`;
  if (size >= 1e6) return `${trim(value / 1e6)} M`;
  if (size >= 1e4) return `${trim(value / 1e3)} k`;
  return thousands(Math.round(value * 100) / 100);
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "?";
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let at = value / 1024;
  let unit = 0;
  while (at >= 1024 && unit < units.length - 1) {
    at /= 1024;
    unit++;
  }
  return `${trim(at)} ${units[unit]}`;
}

export function seconds(value: number): string {
  if (!value) return "–";
  if (value < 1e-3) return `${trim(value * 1e6)} µs`;
  if (value < 1) return `${trim(value * 1e3)} ms`;
  return `${trim(value)} s`;
}

export function percent(share: number | null): string {
  if (share === null || !Number.isFinite(share)) return "?";
  if (share > 0.999 && share < 1) return "> 99.9 %";
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${trim(share * 100)} %`;
}

function trim(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace(/\.?0+$/, (m) => (m.includes(".") ? "" : m));
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${thousands(n)} ${n === 1 ? one : many}`;
}

/** `float32[1, 3, 300, 300]` as it stands on a node: `1×3×300×300`. */
export function shape(type: string): string {
  const inside = /\[(.*?)\]/.exec(type);
  if (!inside) return clip(type, 24);
  return inside[1] === "" ? "scalar" : clip(inside[1].replace(/,\s*/g, "×"), 28);
}

export function dtype(type: string): string {
  return /^[a-z]+[0-9_a-z]*/.exec(type)?.[0] ?? "";
}

/** The last part of a name in the model, and what all of several names share. */
export function commonScope(names: string[]): string {
  const paths = names.filter(Boolean).map((name) => name.split(/[/.]/));
  if (paths.length < 2) return "";
  let depth = 0;
  while (paths.every((p) => depth < p.length - 1 && p[depth] === paths[0][depth])) depth++;
  return depth ? paths[0][depth - 1] : "";
}
