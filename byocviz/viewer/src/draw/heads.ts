/** The heads of wide boxes, whose words stay in sight while the box does. */

interface Head { lead: SVGGElement; x: number; room: number; at: number }

/** Boxes with less room than this beside their words keep them where they are. */
const WIDE = 60;
/** Between the words and the edge of the pane, in the drawing's points. */
const GAP = 4;

export class Heads {
  private all: Head[] = [];

  clear(): void {
    this.all = [];
  }

  /** Of a box whose left edge is at `x` and that has `room` beside its words. */
  add(lead: SVGGElement, x: number, room: number): void {
    if (room > WIDE) this.all.push({ lead, x, room, at: 0 });
  }

  /** Moves the words of the boxes that begin left of what is seen. */
  follow(left: number): void {
    for (const head of this.all) {
      const at = Math.round(Math.min(head.room, Math.max(0, left + GAP - head.x)));
      if (at === head.at) continue;
      head.at = at;
      head.lead.style.transform = at ? `translate(${at}px,0)` : "";
    }
  }
}
