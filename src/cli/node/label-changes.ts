import type { Taint } from "#api/schemas.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";

const keyPattern = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$/;

/** `k=v` sets a label, `k-` takes it away. @throws KcoreError USAGE with every problem */
export function readLabelChanges(words: readonly string[]): { set: Record<string, string>; remove: string[] } {
  const set: [key: string, value: string][] = [];
  const remove: string[] = [];
  collectProblems(words, (word) => {
    const equals = word.indexOf("=");
    if (equals > 0) set.push([checkedKey(word.slice(0, equals), word), word.slice(equals + 1)]);
    else if (word.endsWith("-")) remove.push(checkedKey(word.slice(0, -1), word));
    else throw usageError(`“${word}” is no change of a label`, "key=value sets it, key- takes it away");
  });
  checkOnce([...set.map(([key]) => key), ...remove], words);
  return { set: Object.fromEntries(set), remove };
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;

/** `k=v:Effect` and `k:Effect` set a taint, `k-` takes it away. @throws KcoreError USAGE with every problem */
export function readTaintChanges(words: readonly string[]): { set: Taint[]; remove: string[] } {
  const set: Taint[] = [];
  const remove: string[] = [];
  collectProblems(words, (word) => {
    const colon = word.lastIndexOf(":");
    if (colon < 0 && word.endsWith("-")) {
      remove.push(checkedKey(word.slice(0, -1), word));
      return;
    }
    const given = word.slice(colon + 1);
    const effect = effects.find((known) => known === given);
    if (colon < 0)
      throw usageError(`“${word}” names no effect`, `key=value:${effects.join("|")} sets a taint, key- takes it away`);
    if (!effect)
      throw usageError(
        `“${given}” is no effect of a taint`,
        suggestHint(given, effects, `one of ${effects.join(", ")}`),
      );
    const [key = "", ...rest] = word.slice(0, colon).split("=");
    set.push({ key: checkedKey(key, word), value: rest.join("="), effect });
  });
  checkOnce([...set.map(({ key }) => key), ...remove], words);
  return { set, remove };
}

function collectProblems(words: readonly string[], read: (word: string) => void): void {
  const problems = new Problems();
  for (const word of words) problems.attempt(() => read(word));
  problems.throwIfAny();
}

function checkedKey(key: string, word: string): string {
  if (keyPattern.test(key)) return key;
  throw usageError(
    `“${key}” in “${word}” is no key`,
    "letters, digits, “.”, “_”, “/” and “-”, beginning with a letter or digit",
  );
}

function checkOnce(keys: readonly string[], words: readonly string[]): void {
  const twice = keys.find((key, index) => keys.indexOf(key) !== index);
  if (twice !== undefined) throw usageError(`“${words.join(" ")}” changes ${twice} twice`, "say it once");
}
