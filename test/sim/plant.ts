import { registerHooks } from "node:module";
import { mutants } from "./mutants.ts";
import { rolloutMutants } from "./rollout/mutants.ts";

const planted = { ...mutants, ...rolloutMutants };

/**
 * Plants a bug in the source as it is loaded, in this process only; called before the source is imported. @throws Error for an unknown bug; while
 * loading, if the bug's text is missing or not unique
 */
export function plant(name: string): void {
  const mutant = planted[name];
  if (!mutant) throw new Error(`no planted bug “${name}”; there are ${Object.keys(planted).join(", ")}`);
  const files = new Map<string, typeof mutant.edits>();
  for (const { file } of mutant.edits)
    files.set(
      new URL(`../../src/${file}`, import.meta.url).href,
      mutant.edits.filter((edit) => edit.file === file),
    );
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const edits = files.get(url);
      if (!edits) return loaded;
      const source = loaded.source as string | Uint8Array;
      const text = typeof source === "string" ? source : new TextDecoder().decode(source);
      return { ...loaded, source: edits.reduce(applyEdit, text) };
    },
  });
}

export function applyEdit(source: string, { file, from, to }: { file: string; from: string; to: string }): string {
  if (source.split(from).length !== 2) throw new Error(`src/${file} does not hold exactly once: ${from}`);
  return source.replace(from, () => to);
}
