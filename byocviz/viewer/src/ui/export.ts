/** SVG and PNG of what is seen, or of the whole drawing, with the page's colours in it. */
import { activePane } from "./graph";
import * as s from "./state";

const PROPERTIES = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap",
  "font-size", "font-weight", "font-family", "opacity", "fill-opacity", "stroke-opacity", "display",
  "dominant-baseline", "letter-spacing", "paint-order",
];

export interface Picture { text: string; width: number; height: number }

/** A drawing that needs no style sheet. `whole` takes all of it at its own size. */
export function picture(whole: boolean): Picture | null {
  const pane = activePane();
  if (!pane?.scene) return null;
  pane.finish();
  const { svg, camera, scene } = pane;
  const classes = svg.getAttribute("class") ?? "";
  if (whole) svg.setAttribute("class", "graph");
  const copy = svg.cloneNode(true) as SVGSVGElement;
  inline(svg, copy);
  svg.setAttribute("class", classes);
  const margin = 24;
  const width = whole ? Math.ceil(scene.layout.width + margin * 2) : pane.host.clientWidth;
  const height = whole ? Math.ceil(scene.layout.height + margin * 2) : pane.host.clientHeight;
  const root = copy.querySelector<SVGGElement>(".root")!;
  const t = whole ? { x: margin, y: margin, k: 1 } : camera.t;
  root.removeAttribute("style");
  root.setAttribute("transform", `translate(${t.x} ${t.y}) scale(${t.k})`);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  back.setAttribute("width", "100%");
  back.setAttribute("height", "100%");
  back.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--canvas").trim());
  copy.prepend(back);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

function inline(from: Element, to: Element): void {
  const style = getComputedStyle(from);
  let text = "";
  for (const name of PROPERTIES) {
    const value = style.getPropertyValue(name);
    if (value && value !== "none" && value !== "normal" && value !== "auto") text += `${name}:${value};`;
    else if (value === "none" && (name === "fill" || name === "display")) text += `${name}:none;`;
  }
  const moved = (from as SVGElement).style?.transform;
  const m = moved ? /translate\((-?[\d.e-]+)px,\s*(-?[\d.e-]+)px\)/.exec(moved) : null;
  if (m) to.setAttribute("transform", `translate(${m[1]} ${m[2]})`);
  to.setAttribute("style", text);
  to.removeAttribute("class");
  if (from.classList.contains("root")) to.setAttribute("class", "root");
  for (let i = 0; i < from.children.length; i++) inline(from.children[i], to.children[i]);
}

export async function exportAs(kind: "svg" | "png", whole: boolean): Promise<void> {
  const made = picture(whole);
  if (!made) return s.tell("There is no drawing to export");
  const name = `byocviz-${s.model.value.steps[s.step.value]?.name ?? "graph"}`.replace(/[^\w-]+/g, "_").slice(0, 60);
  if (kind === "svg") {
    save(new Blob([made.text], { type: "image/svg+xml" }), `${name}.svg`);
    return s.tell("Saved the SVG");
  }
  // A canvas larger than this is refused by some browsers.
  const scale = Math.min(2, 12_000 / Math.max(made.width, made.height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(made.text)}`;
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(made.width * scale);
    canvas.height = Math.round(made.height * scale);
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (!blob) throw new Error("the browser made no picture");
    save(blob, `${name}.png`);
    s.tell("Saved the PNG");
  } catch (error) {
    s.tell(`The PNG could not be made (${String(error).slice(0, 80)}); the SVG can`);
  }
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.appendChild(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
