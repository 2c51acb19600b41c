/** Which items are open. A person's own choice wins; the rest is opened as far as a budget goes. */
import type { Item } from "./tree";

export type Choices = ReadonlyMap<string, boolean>;

/** Visible nodes that a drawing starts with, at most: what a pane shows legibly on two or three
 * screens, and what Graphviz lays out before the browser begins to optimise it. */
export const BUDGET = 48;

export function canOpen(item: Item): boolean {
  return item.children.length > 0 || item.inner !== "";
}

/**
 * Items that are open: first those that tell the BYOC story (branches, regions, functions), then
 * the groups found here, the largest first, while all that is visible stays within the budget.
 * `open` of a call is decided by choice alone.
 */
export function openItems(top: Item[], choices: Choices, budget = BUDGET): Set<Item> {
  const open = new Set<Item>();
  let visible = top.length;
  const queue: Item[] = [];
  const offer = (items: Item[]) => {
    for (const item of items) {
      if (!item.children.length) continue;
      const choice = choices.get(item.key);
      if (choice === false) continue;
      if (choice === true) {
        open.add(item);
        visible += item.children.length - 1;
        offer(item.children);
      } else {
        queue.push(item);
      }
    }
  };
  offer(top);
  while (queue.length) {
    let best = -1;
    for (let i = 0; i < queue.length; i++) {
      if (visible - 1 + queue[i].children.length > budget) continue;
      if (best < 0 || rank(queue[i]) > rank(queue[best])) best = i;
    }
    if (best < 0) break;
    const [item] = queue.splice(best, 1);
    open.add(item);
    visible += item.children.length - 1;
    offer(item.children);
  }
  return open;
}

function rank(item: Item): number {
  const story = item.kind === "branch" || item.kind === "function" ? 4e6
    : item.kind === "region" ? 3e6
      : item.kind === "chunk" ? 2e6
        : item.kind === "run" ? 1e6
          : item.kind === "composite" ? 5e5 : 0;
  return story - item.depth * 1000 + Math.min(item.ops.length, 900);
}

export function allKeys(items: Item[], want: (item: Item) => boolean): string[] {
  const keys: string[] = [];
  const walk = (item: Item) => {
    if (canOpen(item) && item.children.length && want(item)) keys.push(item.key);
    item.children.forEach(walk);
  };
  items.forEach(walk);
  return keys;
}
