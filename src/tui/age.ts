const units = [
  { letter: "d", seconds: 86_400 },
  { letter: "h", seconds: 3600 },
  { letter: "m", seconds: 60 },
] as const;

/** Milliseconds in two characters or three: `45s`, `12m`, `30h`, `5d`; the next unit begins at two of it. */
export function shortAge(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const unit = units.find((candidate) => seconds >= 2 * candidate.seconds);
  return unit ? `${Math.floor(seconds / unit.seconds)}${unit.letter}` : `${seconds}s`;
}

/** How long ago an ISO 8601 time was; `-` where there is none. */
export function since(time: string, now: number): string {
  return time === "" ? "-" : shortAge(now - Date.parse(time));
}

/** How long until an ISO 8601 time; `-` where there is none. */
export function until(time: string, now: number): string {
  if (time === "") return "-";
  const left = Date.parse(time) - now;
  return left > 0 ? shortAge(left) : "expired";
}
