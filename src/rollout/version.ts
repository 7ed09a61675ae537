/**
 * Whether a version is older: by numbers between dots, and of semantic versions by what stands behind them, too (SemVer 2.0, section 11:
 * 0.4.0-rc.1 comes before 0.4.0). What is neither is not compared.
 */
export function isOlder(version: string, than: string): boolean {
  const [a, b] = [parseVersion(version), parseVersion(than)];
  return a !== undefined && b !== undefined && (compareNumbers(a.numbers, b.numbers) || comparePre(a.pre, b.pre)) < 0;
}

interface Version {
  readonly numbers: readonly string[];
  /** What makes it come before its release; empty for the release itself. */
  readonly pre: readonly string[];
}

const numbers = /^\d+(\.\d+)*$/;
const semantic = /^(?<core>\d+\.\d+\.\d+)(?:-(?<pre>[\dA-Za-z.-]+))?(?:\+(?<build>[\dA-Za-z.-]+))?$/;

function parseVersion(text: string): Version | undefined {
  if (numbers.test(text)) return { numbers: text.split("."), pre: [] };
  const { core, pre, build } = semantic.exec(text)?.groups ?? {};
  if (core === undefined) return undefined;
  const words = pre?.split(".") ?? [];
  const isSound = words.every((word) => word !== "" && !/^0\d+$/.test(word)) && build?.split(".").includes("") !== true;
  return isSound ? { numbers: core.split("."), pre: words } : undefined;
}

function compareNumbers(a: readonly string[], b: readonly string[]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = compareDigits(a[at] ?? "0", b[at] ?? "0");
    if (difference !== 0) return difference;
  }
  return 0;
}

function comparePre(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (const [at, word] of a.entries()) {
    const other = b[at];
    if (other === undefined) return 1;
    const difference = compareWords(word, other);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Numbers come before words. */
function compareWords(a: string, b: string): number {
  const [isNumber, isOtherNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (isNumber && isOtherNumber) return compareDigits(a, b);
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** However many digits there are. */
function compareDigits(a: string, b: string): number {
  const [one, other] = [BigInt(a), BigInt(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}
