import { z } from "zod";
import type { Blob } from "../step/blob.ts";
import { defineModule, type Step, type StepContext } from "../step/define.ts";
import { AbsolutePath, FileMode, Text, UserName } from "../step/fields.ts";
import { contentOf } from "../step/fragments/content.ts";
import { probeOwnership, wantOwnership } from "../step/fragments/ownership.ts";
import { keepingBackup, Validate, validation } from "../step/fragments/replaced.ts";
import { reachOfData } from "../step/reach-of-data.ts";
import { secret } from "../step/secret.ts";
import { sh, type Sh } from "../step/sh.ts";

const args = z
  .strictObject({
    path: AbsolutePath.describe("The file on the node."),
    content: Text.optional().describe("Its text, as it is."),
    template: z.string().optional().describe("A template under templates/ that makes its text."),
    vars: z.record(z.string(), z.unknown()).optional().describe("More names for the template."),
    source: z.string().optional().describe("A file of the project with its bytes."),
    base64: Text.optional().describe("Its bytes in base64."),
    mode: FileMode.optional().describe("Mode; else kept, for a new file 0644, or 0600 when the content is secret."),
    owner: UserName.optional().describe("Owner; else kept, root for a new file."),
    group: UserName.optional().describe("Group; else kept, root for a new file."),
    makeDirs: z.boolean().default(false).describe("Make the folders above it when they are not there."),
    backup: z.boolean().default(false).describe("Keep what it replaces as PATH.kcore-TIME."),
    validate: Validate,
    sensitive: z.boolean().default(false).describe("Never show the content, not even its hash."),
  })
  .refine(
    ({ content, template, source, base64 }) =>
      [content, template, source, base64].filter((given) => given !== undefined).length === 1,
    "give exactly one of content, template, source, base64",
  )
  .refine(({ template, vars }) => vars === undefined || template !== undefined, "vars are for a template");

/**
 * ```yaml
 * file.managed:
 *   path: /etc/kcore/motd
 *   content: |
 *     managed by kcore
 *   mode: "0644"
 *   owner: root
 *   group: root
 * ```
 * A symbolic link at the path is replaced by the file; a folder or a device there is refused. The file is replaced as a
 * whole: readers see the old or the new one (requirement S-6).
 */
export const fileManaged = defineModule({
  name: "file.managed",
  summary: "Keeps a file's content, mode and owner.",
  alsoKnownAs: ["copy", "template", "file", "file.contents", "files.put", "files.template", "upload", "jinja"],
  args,
  refusals: ["FILE_INVALID", "FILE_IN_THE_WAY", "FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED"],
  step: (given, context) => {
    const { path, owner, group, makeDirs, backup, validate } = given;
    const { blob, text, sensitive } = contentOf(given, context);
    const mode = given.mode ?? (sensitive ? "0600" : undefined);
    const data = { kind: "file", path, blob, mode, owner, group, makeDirs } as const;
    return {
      ...(/\/s?bin\//.test(path) && { brings: true }),
      want: {
        kind: "file",
        content: sensitive ? "as wanted" : `sha256:${blob.sha256}`,
        ...wantOwnership({ mode, owner, group }),
      },
      probe: sh`kind_of ${path}
fact kind "$kind"
[ "$kind" = file ] || exit 0
${probeContent(path, blob, sensitive)}
${probeOwnership(path, { owner, group })}`,
      guard: sh`guard_file ${path}`,
      keep: sh`keep_path ${path}`,
      foresee: sh`foresee_place ${path} 8 ${makeDirs ? 1 : 0} ${owner ?? "-"} ${group ?? "-"}`,
      apply: sh`parent_of ${path} ${makeDirs ? 1 : 0} ${owner ?? ""}
${validation(path, validate, blob)}
${backup ? keepingBackup(path, owner ?? "-") : sh``}
put_file ${blob} ${path} ${mode ?? "-"} ${owner ?? "-"} ${group ?? "-"}`,
      ...(validate === undefined && !backup && !sensitive ? { data } : { reach: reachOfData(data) }),
      ...(text === undefined ? {} : { show: sh`! open_file ${path} || cat <&9`, shown: text }),
      ...(sensitive ? { sensitive } : {}),
      ...(validate === undefined ? ({ quiet: true } as const) : {}),
    };
  },
});

/** The hash of secret bytes is as good as the bytes to who can guess them, so it travels as a secret too. */
function probeContent(path: string, { sha256 }: Blob, sensitive: boolean): Sh {
  const found = sh`sum=$(sha256sum <${path}) || exit 1
sum=\${sum%% *}`;
  return sensitive
    ? sh`${found}
if [ "$sum" = ${secret(sha256)} ]; then fact content "as wanted"; else fact content different; fi`
    : sh`${found}
fact content "sha256:$sum"`;
}

interface FileOfRoot {
  readonly path: string;
  readonly content: string;
  readonly mode: string;
  readonly makeDirs?: boolean;
}

/** For modules whose matter is one file of root's: keeps it as a whole. */
export function stepOfFile(file: FileOfRoot, context: StepContext): Step {
  return fileManaged.step(fileManaged.args.parse({ ...file, owner: "root", group: "root" }), context);
}

/** The same, of a text that a program of the node reads first: `check` refuses what that does not accept, in dry runs too. */
export function stepOfCheckedFile(file: FileOfRoot, check: Sh, context: StepContext): Step {
  const { data, ...step } = stepOfFile(file, context);
  return {
    ...step,
    ...(data && { reach: reachOfData(data) }),
    foresee: sh`${step.foresee ?? sh``}
${check}`,
    apply: sh`${check}
${step.apply ?? sh``}`,
  };
}
