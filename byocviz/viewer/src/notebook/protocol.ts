/**
 * What a notebook's kernel and the viewer say to each other. The viewer stands in a frame of its
 * own, so that neither its styles nor a stranger's recording reach the notebook; `outer.ts` passes
 * messages on between the frame and the kernel.
 */

/** One part of a recording: gzip'ed JSON, named by its digest. */
export interface Piece { digest: string; data: ArrayBuffer }

export interface Chosen { op?: number; subgraph?: number }

export interface Show {
  step?: string;
  select?: Chosen | null;
  from?: string;
  tab?: string;
  layout?: string;
  function?: string;
}

/** To the frame. */
export type ToFrame =
  | { type: "state"; rev: number; parts: { head: string; ops: string; results: string; extra: string; steps: string[] }; pending: string[]; holds: number[]; pieces: Piece[]; texts: ArrayBuffer | null; show: Show }
  | { type: "show"; show: Show }
  | { type: "matches"; title: string; ops: number[] }
  | { type: "say"; text: string }
  | { type: "copy"; text: string; what: string }
  | { type: "picture?" }
  | { type: "theme"; dark: boolean };

/** From the frame. */
export type FromFrame =
  | { type: "ready" }
  | { type: "missing"; digests: string[] }
  | { type: "view"; show: Show; zoom: number[] | null }
  | { type: "hold"; ops: number[]; on: boolean }
  | { type: "drawn"; rev: number; step: string; milliseconds: number }
  | { type: "picture"; svg: string }
  | { type: "picture"; png: string };
