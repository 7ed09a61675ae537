import { z } from "zod";
import { defineModule, type StepContext } from "../step/define.ts";
import { AbsolutePath, FileMode, TextOrSecret, UserName } from "../step/fields.ts";
import { contentOf } from "../step/fragments/content.ts";
import { fileRefusals, stepOfData, type FileStep } from "../step/fragments/files.ts";
import { keepingBackup, Validate, validation } from "../step/fragments/file-validation.ts";
import { sh, type Sh } from "../step/sh.ts";

const args = z
  .strictObject({
    path: AbsolutePath.describe("The file on the node."),
    content: TextOrSecret.optional().describe("The file's text, as it is."),
    template: z.string().optional().describe("A template under templates/ that makes the text."),
    vars: z.record(z.string(), z.unknown()).optional().describe("More names for the template."),
    source: z.string().optional().describe("A file of the project with the bytes."),
    base64: TextOrSecret.optional().describe("The file's bytes in base64."),
    mode: FileMode.optional().describe("Mode; else 0600 if the content is secret, else kept, 0644 for a new file."),
    owner: UserName.optional().describe("Owner; else kept, root for a new file."),
    group: UserName.optional().describe("Group; else kept, root for a new file."),
    makeDirs: z.boolean().default(false).describe("Make the missing folders above path."),
    backup: z.boolean().default(false).describe("Keep the replaced file as PATH.kcore-TIME."),
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
  refusals: ["FILE_INVALID", ...fileRefusals],
  step: makeStep,
});

function makeStep(given: z.output<typeof args>, context: StepContext): FileStep {
  const { path, owner, group, makeDirs, backup, validate } = given;
  const { blob, text, sensitive } = contentOf(given, context);
  const mode = given.mode ?? (sensitive ? "0600" : undefined);
  const step = stepOfData({ kind: "file", path, blob, mode, owner, group, makeDirs });
  const isMore = validate !== undefined || backup;
  // A validator may print much, so the step is not quiet.
  const { quiet: _, ...loud } = step;
  return {
    ...(validate === undefined ? step : loud),
    ...(/\/s?bin\//.test(path) && { brings: true }),
    ...((isMore || sensitive) && { data: undefined }),
    ...(isMore && {
      apply: sh`${validation(path, validate, blob)}
${backup ? keepingBackup(path, owner ?? "-") : sh``}
${step.apply}`,
    }),
    ...(text === undefined ? {} : { show: sh`! open_file ${path} || cat <&9`, shown: text }),
    ...(sensitive ? { sensitive } : {}),
  };
}

interface FileOfRoot {
  readonly path: string;
  readonly content: string;
  readonly mode: string;
  readonly makeDirs?: boolean;
}

/** The step of a module that manages one whole file of root. */
export function stepOfFile(file: FileOfRoot, context: StepContext): FileStep {
  return makeStep(args.parse({ ...file, owner: "root", group: "root" }), context);
}

/**
 * {@link stepOfFile} for a text that a program on the node checks before it is written, in dry runs too: `check` refuses a
 * text that the program does not accept.
 */
export function stepOfCheckedFile(file: FileOfRoot, check: Sh, context: StepContext): FileStep {
  const step = stepOfFile(file, context);
  return {
    ...step,
    data: undefined,
    foresee: sh`${step.foresee}
${check}`,
    apply: sh`${check}
${step.apply}`,
  };
}
