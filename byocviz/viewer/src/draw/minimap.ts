/** The whole drawing in a corner, with a frame round what is seen. */
import type { Camera } from "./camera";
import type { Scene } from "./scene";
import { paintClass } from "./scene";

const WIDE = 150;
const HIGH = 190;
/** The most of a pane's width and height that it covers, and the least side at which it tells something. */
const SHARE = 0.4;
const LEAST = 44;
const base = new WeakMap<HTMLCanvasElement, { scene: Scene; theme: string; image: HTMLCanvasElement }>();

export function drawMinimap(canvas: HTMLCanvasElement, scene: Scene | null, camera: Camera): void {
  const [x, y, w, h] = camera.seen();
  const [cw, ch] = camera.content;
  const whole = x <= 1 && y <= 1 && x + w >= cw - 1 && y + h >= ch - 1;
  const [wide, high] = [Math.min(WIDE, w * camera.t.k * SHARE), Math.min(HIGH, h * camera.t.k * SHARE)];
  const scale = Math.min(wide / cw, high / ch);
  canvas.hidden = !scene || whole || Math.max(cw, ch) * scale < LEAST;
  if (canvas.hidden || !scene) return;
  const ratio = window.devicePixelRatio || 1;
  const pw = Math.max(24, Math.ceil(cw * scale));
  const ph = Math.max(24, Math.ceil(ch * scale));
  if (canvas.width !== Math.round(pw * ratio) || canvas.height !== Math.round(ph * ratio)) {
    canvas.width = Math.round(pw * ratio);
    canvas.height = Math.round(ph * ratio);
    canvas.style.width = `${pw}px`;
    canvas.style.height = `${ph}px`;
    base.delete(canvas);
  }
  canvas.dataset.scale = String(scale);
  const theme = document.documentElement.dataset.theme ?? "";
  let kept = base.get(canvas);
  if (!kept || kept.scene !== scene || kept.theme !== theme) {
    kept = { scene, theme, image: paint(canvas, scene, scale * ratio) };
    base.set(canvas, kept);
  }
  const c = canvas.getContext("2d");
  if (!c) return;
  const { view, accent } = tones(theme);
  c.setTransform(1, 0, 0, 1, 0, 0);
  c.clearRect(0, 0, canvas.width, canvas.height);
  c.drawImage(kept.image, 0, 0);
  c.scale(scale * ratio, scale * ratio);
  c.fillStyle = view;
  c.strokeStyle = accent;
  c.lineWidth = 1.5 / scale;
  c.beginPath();
  c.rect(x, y, w, h);
  c.fill();
  c.stroke();
}

function paint(canvas: HTMLCanvasElement, scene: Scene, scale: number): HTMLCanvasElement {
  const image = document.createElement("canvas");
  image.width = canvas.width;
  image.height = canvas.height;
  const c = image.getContext("2d");
  if (!c) return image;
  const { colour } = tones(document.documentElement.dataset.theme ?? "");
  c.scale(scale, scale);
  scene.view.boxes.forEach((item, j) => {
    const at = scene.layout.boxes[j];
    if (!at || (item.kind !== "region" && item.kind !== "call")) return;
    c.globalAlpha = 0.18;
    c.fillStyle = colour(paintClass(item, scene.words.get(item)!, scene));
    c.fillRect(...at);
  });
  c.globalAlpha = 1;
  scene.view.nodes.forEach((item, i) => {
    const at = scene.layout.nodes[i];
    if (!at) return;
    const cls = paintClass(item, scene.words.get(item)!, scene);
    c.fillStyle = colour(cls);
    c.globalAlpha = cls.endsWith(" matched") ? 0.4 : 1;
    const low = 2 / scale;
    c.fillRect(at[0] - at[2] / 2, at[1] - at[3] / 2, Math.max(at[2], low), Math.max(at[3], low));
  });
  return image;
}

interface Tones { theme: string; view: string; accent: string; colour: (cls: string) => string }

let known: Tones | null = null;

/** The page's colours, asked for once a theme: asking works out the style of the whole page. */
function tones(theme: string): Tones {
  if (known?.theme === theme) return known;
  const style = getComputedStyle(document.documentElement);
  const colours = new Map<string, string>();
  known = {
    theme,
    view: style.getPropertyValue("--map-view"),
    accent: style.getPropertyValue("--accent"),
    colour: (cls) => {
      let found = colours.get(cls);
      if (!found) colours.set(cls, (found = style.getPropertyValue(`--${cls.split(" ")[0]}-line`).trim() || "#888"));
      return found;
    },
  };
  return known;
}
