/** One line of the plain view; the mark before it tells what kind of news it is. */
export interface PlainLine {
  readonly mark: "started" | "done" | "failed" | "skipped" | "output" | "title" | "warning";
  readonly text: string;
}

/** Milliseconds as a person says them: `0.4 s`, `12 s`, `3 min 05 s`. */
export function formatDuration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours > 0) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
}
