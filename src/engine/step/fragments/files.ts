import { omitUndefined } from "#base/omit-undefined.ts";
import type { StepFacts, FileOwnership, Step, StepData } from "../define.ts";
import { isAccountId, modeNumber } from "../fields.ts";
import { folderOf, ownersOf, type Effects, type NodeResource } from "../effects.ts";
import { secret } from "../secret.ts";
import { sh, type Sh } from "../sh.ts";

/** The refusals of every step that writes a file. */
export const fileRefusals = ["FILE_IN_THE_WAY", "FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED"] as const;
/** The refusals of every step that removes a file. */
export const absentRefusals = [
  "FILE_MOUNTED",
  "FILE_NOT_EMPTY",
  "FILE_NO_PARENT",
  "FILE_PARENT_UNSAFE",
  "NIXOS_MANAGED",
] as const;

/** The wanted facts `mode` (four octal digits), `owner` and `group`; an absent argument has no fact. */
export function wantOwnership({ mode, owner, group }: FileOwnership): StepFacts {
  return {
    ...(mode === undefined ? {} : { mode: modeNumber(mode).toString(8).padStart(4, "0") }),
    ...omitUndefined({ owner, group }),
  };
}

/** Reports the facts `mode`, `owner` and `group` of an existing path; a number where the argument is a number. */
export function probeOwnership(path: string, { owner, group }: FileOwnership): Sh {
  const format = `%a ${isAccountId(owner) ? "%u" : "%U"} ${isAccountId(group) ? "%g" : "%G"}`;
  return sh`stat=$(stat -c ${format} -- ${path}) || exit 1
set -- $stat
fact mode "$(printf %04d "$1")"
fact owner "$2"
fact group "$3"`;
}

function probeKind(path: string): Sh {
  return sh`kind_of ${path}
fact kind "$kind"`;
}

/** Reports the fact `kind` of a path; for a file also the fact of `content`, made from `$sum`, and {@link probeOwnership}. */
export function probeFileAt(path: string, ownership: FileOwnership, content: Sh = sh`fact content "sha256:$sum"`): Sh {
  return sh`${probeKind(path)}
[ "$kind" = file ] || exit 0
sum=$(sha256sum <${path}) || exit 1
sum=\${sum%% *}
${content}
${probeOwnership(path, ownership)}`;
}

/** A step of {@link stepOfData}, or a step that a module derives from it. */
export type FileStep = Step & Required<Pick<Step, "effects" | "guard" | "foresee" | "apply">>;

/**
 * The step that manages a file, folder or link, or its absence: its data for batches, and texts with the same meaning
 * for a shell of its own.
 */
export function stepOfData(data: StepData): FileStep {
  const { path } = data;
  const makeDirs = "makeDirs" in data && data.makeDirs ? 1 : 0;
  const common = { data, effects: effectsOfData(data), quiet: true } as const;
  const keep = sh`keep_path ${path}`;
  switch (data.kind) {
    case "absent": {
      const recurse = data.recurse ? 1 : 0;
      return {
        ...common,
        want: { kind: "absent" },
        probe: probeKind(path),
        guard: sh`guard_absent ${path} ${recurse}`,
        ...(!data.recurse && { keep }),
        foresee: sh`foresee_place ${path} - 0 - -`,
        apply: sh`remove_path ${path} ${recurse}`,
      };
    }
    case "symlink":
      return {
        ...common,
        want: { kind: "symlink", target: data.target },
        probe: sh`${probeKind(path)}
[ "$kind" != symlink ] || fact target "$(readlink -- ${path})"`,
        guard: sh`guard_symlink ${path} ${data.force ? 1 : 0}`,
        keep,
        foresee: sh`foresee_place ${path} - ${makeDirs} - -`,
        apply: sh`parent_of ${path} ${makeDirs}
put_link ${data.target} ${path}`,
      };
    case "directory":
      return {
        ...common,
        want: { kind: "directory", ...wantOwnership(data) },
        probe: sh`${probeKind(path)}
[ "$kind" = directory ] || exit 0
${probeOwnership(path, data)}`,
        guard: sh`guard_directory ${path}`,
        foresee: sh`foresee_place ${path} 4 ${makeDirs} ${data.owner ?? "-"} ${data.group ?? "-"}`,
        apply: sh`parent_of ${path} ${makeDirs} ${data.owner ?? ""}
keep_folder ${path} ${data.mode ?? "-"} ${data.owner ?? "-"} ${data.group ?? "-"}`,
      };
    case "file":
      return {
        ...common,
        want: {
          kind: "file",
          content: data.blob.sensitive ? "as wanted" : `sha256:${data.blob.sha256}`,
          ...wantOwnership(data),
        },
        probe: probeFileAt(path, data, data.blob.sensitive ? compareSecret("content", data.blob.sha256) : undefined),
        guard: sh`guard_file ${path}`,
        keep,
        foresee: foreseeFile(data),
        apply: sh`parent_of ${path} ${makeDirs} ${data.owner ?? ""}
put_file ${data.blob} ${path} ${data.mode ?? "-"} ${data.owner ?? "-"} ${data.group ?? "-"}`,
      };
  }
}

/** Reports whether `$sum` is this hash, which is sent as a secret: a reader could test guesses of the bytes with it. */
export function compareSecret(fact: string, sha256: string): Sh {
  return sh`if [ "$sum" = ${secret(sha256)} ]; then fact ${fact} "as wanted"; else fact ${fact} different; fi`;
}

function effectsOfData(data: StepData): Effects {
  const { path } = data;
  const above: readonly NodeResource[] = "makeDirs" in data && data.makeDirs ? [{ is: "parents", path }] : [];
  switch (data.kind) {
    case "absent":
      return {
        writes: [{ is: "tree", path }],
        reads: [
          { is: "tree", path },
          { is: "noFile", path },
        ],
      };
    case "symlink":
      return { writes: [{ is: "path", path }, ...above], reads: [{ is: "path", path }] };
    case "file":
      return effectsOfFile(data);
    case "directory":
      return { ...effectsOfFile(data), writes: [folderOf(data), ...above] };
  }
}

/** A file's path, owner and group. */
interface FilePlace extends Pick<FileOwnership, "owner" | "group"> {
  readonly path: string;
  readonly makeDirs: boolean;
}

/** The effects of a step that writes this file. */
export function effectsOfFile({ path, makeDirs, owner, group }: FilePlace): Effects {
  return {
    writes: [{ is: "path", path }, ...(makeDirs ? [{ is: "parents", path } as const] : [])],
    reads: [{ is: "path", path, owner }, ...ownersOf({ owner, group })],
  };
}

/** In a dry run, after the guard: fails if the file could not be written. */
export function foreseeFile({ path, makeDirs, owner, group }: FilePlace): Sh {
  return sh`foresee_place ${path} 8 ${makeDirs ? 1 : 0} ${owner ?? "-"} ${group ?? "-"}`;
}

/**
 * The step with further resources to read, and a text before its probe. The new step has no data, which cannot express
 * that text.
 */
export function withProbe(step: Step, probe: Sh, reads: readonly NodeResource[]): Step {
  const { effects } = step;
  return {
    ...step,
    data: undefined,
    ...(effects && { effects: { ...effects, reads: [...effects.reads, ...reads] } }),
    probe: sh`${probe}
${step.probe}`,
  };
}
