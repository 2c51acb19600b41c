/** Keys while presenting. Clickers send PageUp and PageDown, some the arrows, and "." or "b". */
import * as s from "../ui/state";
import * as talk from "./talk";
import { heard, openSpeaker } from "./wire";

export const TALK_KEYS: [string, string][] = [
  ["P", "present, and back to the viewer"],
  ["→ ←  or  Space", "presenting: next stop, stop before (also Page Down, Page Up)"],
  ["Shift ← →", "presenting: by steps instead"],
  ["a", "presenting: go on by itself, and pause"],
  ["s", "presenting: the speaker's window, with notes and clock"],
  ["v", "presenting: the note on the stage"],
  ["b  .", "presenting: black screen"],
];

/** Whether the key was one of presenting. */
export function presenterKey(key: string, shift: boolean, onButton: boolean): boolean {
  if (key === "P") {
    if (talk.presenting.value) talk.leave();
    else talk.enter();
    return true;
  }
  if (!talk.presenting.value) return false;
  switch (key) {
    case "ArrowRight":
    case "ArrowLeft":
      if (shift) return false;
      talk.walk(key === "ArrowRight" ? 1 : -1);
      return true;
    case "PageDown": talk.walk(1); return true;
    case "PageUp": talk.walk(-1); return true;
    case " ":
      if (onButton) return false;
      talk.walk(shift ? -1 : 1);
      return true;
    case "Home": talk.show(0); return true;
    case "End": talk.show(talk.stops.value.length - 1); return true;
    case "a": toggleAuto(); return true;
    case "s": openSpeaker(); return true;
    case "v": talk.noteShown.value = !noteOn(); return true;
    case "b":
    case ".": talk.setBlank(!talk.blank.value); return true;
    default: return false;
  }
}

export function toggleAuto(): void {
  talk.setAuto(!talk.auto.value);
  s.tell(talk.auto.value ? "Goes on by itself; a pauses" : "Paused");
}

/** The audience sees the note unless the speaker has it before them. */
export function noteOn(): boolean {
  return talk.noteShown.value ?? heard.value === 0;
}
