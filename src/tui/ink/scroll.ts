/** The part of a long list that is shown. */
export interface Window {
  readonly top: number;
  readonly end: number;
}

/** Moves the window that began at `top` no further than needed to show `selected`, and never past the ends. */
export function windowAround(count: number, height: number, top: number, selected?: number): Window {
  const room = Math.max(0, height);
  let first = top;
  if (selected !== undefined && selected >= 0) {
    if (selected < first) first = selected;
    if (selected >= first + room) first = selected - room + 1;
  }
  first = Math.max(0, Math.min(first, count - room));
  return { top: first, end: Math.min(count, first + room) };
}
