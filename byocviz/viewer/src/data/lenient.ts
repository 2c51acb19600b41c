/** Reading foreign JSON: each helper gives a value of its type whatever it is handed. */

export type Raw = Record<string, unknown>;

export const MAX_STRING = 200_000;

export function text(value: unknown, fallback = ""): string {
  if (typeof value === "string") {
    return value.length > MAX_STRING ? `${value.slice(0, MAX_STRING)}…` : value;
  }
  return typeof value === "number" || typeof value === "boolean" ? String(value) : fallback;
}

export function count(value: unknown, fallback = 0): number {
  return typeof value === "number" && Number.isFinite(value) ? value : fallback;
}

/** A figure that may be unknown (null). A missing field has its default, zero. */
export function figure(value: unknown, fallback: number | null = 0): number | null {
  if (value === null) return null;
  return typeof value === "number" && Number.isFinite(value) ? value : fallback;
}

export function index(value: unknown): number {
  return typeof value === "number" && Number.isInteger(value) ? value : -1;
}

export function flag(value: unknown, fallback: boolean): boolean {
  return typeof value === "boolean" ? value : fallback;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function dict(value: unknown): Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Raw) : {};
}

export function texts(value: unknown): string[] {
  return list(value).map((one) => text(one));
}

export function indices(value: unknown): number[] {
  return list(value).filter((one): one is number => Number.isInteger(one));
}

export function counts(value: unknown): Record<string, number> {
  const out: Record<string, number> = Object.create(null);
  for (const [key, one] of Object.entries(dict(value))) out[key] = count(one);
  return out;
}

/** Texts of any length by key. */
export function documents(value: unknown): Record<string, string> {
  const out: Record<string, string> = Object.create(null);
  for (const [key, one] of Object.entries(dict(value))) if (typeof one === "string") out[key] = one;
  return out;
}

export function words(value: unknown): Record<string, string> {
  const out: Record<string, string> = Object.create(null);
  for (const [key, one] of Object.entries(dict(value))) out[key] = text(one);
  return out;
}
