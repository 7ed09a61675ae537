/** Milliseconds in at most six characters, for columns: `0.4s`, `12s`, `3m05s`, `1h02m`, `3d04h`. */
export function shortDuration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const two = (number: number) => String(Math.floor(number)).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h${two((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86_400)}d${two((whole % 86_400) / 3600)}h`;
}
