/** Whether a version is older: numbers between dots; what is otherwise is not compared. */
export function isOlder(version: string, than: string): boolean {
  const isPlain = [version, than].every((text) => /^\d+(\.\d+)*$/.test(text));
  if (!isPlain) return false;
  const [a, b] = [version, than].map((text) => text.split(".").map(Number)) as [number[], number[]];
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
