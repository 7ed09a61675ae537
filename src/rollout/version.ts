import parse from "semver/functions/parse.js";

/** Whether a version is older, by SemVer's precedence; `1` and `25.05` are versions, too. Texts of other forms have no order. */
export function isOlder(version: string, than: string): boolean {
  const [a, b] = [parseVersion(version), parseVersion(than)];
  return a !== null && b !== null && a.compare(b) < 0;
}

function parseVersion(text: string): ReturnType<typeof parse> {
  return parse(/^\d+(\.\d+)?$/.test(text) ? [...text.split(".").map(Number), 0, 0].slice(0, 3).join(".") : text);
}
