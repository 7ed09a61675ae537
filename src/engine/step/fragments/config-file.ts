import type { Blob } from "../blob.ts";
import type { StepFacts } from "../define.ts";
import { pathsOf } from "../effects.ts";
import { sh, shLines, type Sh } from "../sh.ts";

/** A file of root with mode 0644 that a step writes; the names of its facts begin with `fact`. */
export interface ConfigFile {
  readonly fact: string;
  readonly path: string;
  readonly blob: Blob;
}

/** The facts that {@link probeFile} reports for the wanted file. */
export function wantFile({ fact, blob: { sha256 } }: Pick<ConfigFile, "fact" | "blob">): StepFacts {
  return { [fact]: `sha256:${sha256}`, [`${fact} mode`]: "0644", [`${fact} owner`]: "root:root" };
}

/**
 * Reports the facts of {@link wantFile}; for a path without a file only the fact `fact`, which is then the path's kind, such
 * as `absent`. Sets `kind` to the value of that fact.
 */
export function probeFile({ fact, path }: Pick<ConfigFile, "fact" | "path">): Sh {
  return sh`kind_of ${path}
if [ "$kind" = file ]; then
  sum=$(sha256sum <${path}) && stat=$(stat -c '%a %U:%G' ${path}) || exit 1
  kind=sha256:\${sum%% *}
  mode=\${stat% *}
  while [ \${#mode} -lt 4 ]; do mode=0$mode; done
  fact ${`${fact} mode`} "$mode"
  fact ${`${fact} owner`} "\${stat#* }"
fi
fact ${fact} "$kind"`;
}

/** Replaces the file, and makes missing folders above it. */
export function putFile({ path, blob }: Pick<ConfigFile, "path" | "blob">): Sh {
  return sh`parent_of ${path} 1 && put_file ${blob} ${path} 0644 root root || exit 1`;
}

/**
 * The parts of a step that writes files of root and makes their folders: guard, `keep` for trials, `foresee` for dry
 * runs, and resources.
 */
export function fileStepParts(paths: readonly string[]) {
  return {
    resources: pathsOf(paths),
    guard: shLines(paths.map((path) => sh`guard_file ${path}`)),
    keep: shLines(paths.map((path) => sh`keep_path ${path}`)),
    foresee: shLines(paths.map((path) => sh`foresee_place ${path} 8 1 root root`)),
  };
}
