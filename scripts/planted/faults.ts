import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";

const entry = z.strictObject({
  name: z.string().regex(/^[a-z\d]+(-[a-z\d]+)*$/),
  /** The promise that breaks. */
  why: z.string().min(1),
  /** The path of the source file, relative to src/. */
  file: z.string().min(1),
  /** The text that the fault replaces; the file holds it exactly once. */
  from: z.string().min(1),
  to: z.string(),
  /** The test files in which at least one test must fail. */
  tests: z.array(z.string()).nonempty(),
});

/** Faults of one file, all found by the same tests. */
const group = entry
  .pick({ file: true, tests: true })
  .extend({ faults: z.array(entry.omit({ file: true, tests: true })) });

/** A fault: one replacement in one file, and the test files of which at least one must fail. */
export type Fault = Readonly<z.infer<typeof entry>> & { readonly area: string };

/**
 * All faults of `test/planted/AREA.yaml`, in the order of areas.
 * @throws Error if a file is not a list of faults
 */
export function readFaults(root: string): readonly Fault[] {
  return globSync("test/planted/*.yaml", { cwd: root })
    .toSorted()
    .flatMap((name) => {
      const list = z.array(z.union([entry, group])).safeParse(parse(readFileSync(join(root, name), "utf8")));
      if (!list.success) throw new Error(`${name}: ${z.prettifyError(list.error)}`);
      const faults = list.data.flatMap((one) =>
        "faults" in one ? one.faults.map((fault) => ({ ...fault, file: one.file, tests: one.tests })) : [one],
      );
      return faults.map((fault) => ({ ...fault, area: basename(name, ".yaml") }));
    });
}

/** The reason why this fault cannot be planted in the tree; undefined if there is none. */
export function whyNot({ file, from, to, tests }: Fault, root: string): string | undefined {
  const path = join(root, "src", file);
  if (!existsSync(path)) return `there is no src/${file}`;
  const times = readFileSync(path, "utf8").split(from).length - 1;
  if (times !== 1) return `src/${file} holds ${times} times: ${from}`;
  if (from === to) return "it changes nothing";
  const missing = tests.find((test) => !existsSync(join(root, test)));
  return missing && `there is no ${missing}`;
}

/** The names that more than one fault has. */
export function duplicateNames(faults: readonly Fault[]): readonly string[] {
  const names = faults.map(({ name }) => name);
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}
