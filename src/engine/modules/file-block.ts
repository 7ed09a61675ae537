import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { blobOf, type Blob } from "../step/blob.ts";
import { defineModule, type StepContext } from "../step/define.ts";
import { AbsolutePath, TextOrSecret } from "../step/fields.ts";
import { contentOf } from "../step/fragments/content.ts";
import {
  editFields,
  editRefusals,
  findPlace,
  hasAtMostOnePlace,
  placeFields,
  putLines,
  copyLines,
  refuseEdit,
  splice,
} from "../step/fragments/edit.ts";
import { compareSecret, effectsOfFile, foreseeFile } from "../step/fragments/files.ts";
import { sh, type Sh } from "../step/sh.ts";

const OneLine = z.string().regex(/^[^\0\r\n]*$/, "must be one line");

const args = z
  .strictObject({
    path: AbsolutePath.describe("The file on the node."),
    name: OneLine.min(1).describe(
      "Names the block in its two marker lines; each block of a file has a name of its own.",
    ),
    content: TextOrSecret.optional().describe("The lines between the markers."),
    template: z.string().optional().describe("A template under templates/ that makes the lines."),
    vars: z.record(z.string(), z.unknown()).optional().describe("More names for the template."),
    comment: OneLine.default("#").describe("The text that begins a comment in this kind of file."),
    commentEnd: OneLine.default("").describe("The text that ends a comment in this kind of file, such as --> or */."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the block shall be there."),
    ...placeFields,
    ...editFields,
    sensitive: z.boolean().default(false).describe("Never show the lines, not even their hash."),
  })
  .refine(
    ({ content, template, state }) =>
      [content, template].filter((given) => given !== undefined).length === (state === "present" ? 1 : 0),
    "give one of content and template (neither with state: absent)",
  )
  .refine(({ template, vars }) => vars === undefined || template !== undefined, "vars are for a template")
  .refine(
    ({ create, makeDirs, state, insertAfter, insertBefore }) =>
      state === "present" || !(create || makeDirs || insertAfter !== undefined || insertBefore !== undefined),
    "create, makeDirs, insertAfter and insertBefore are for state: present",
  )
  .refine(hasAtMostOnePlace, "give one of insertAfter and insertBefore");

type Args = z.output<typeof args>;

/**
 * ```yaml
 * file.block:
 *   path: /etc/security/limits.conf
 *   name: database
 *   content: |
 *     postgres soft nofile 65536
 *     postgres hard nofile 65536
 *   insertBefore: ^# End of file
 * ```
 * Lines between `# BEGIN kcore NAME` and `# END kcore NAME` in a file that kcore does not own; all other lines stay. A
 * present block stays where it is. One marker without the other, or a second block, is refused: only the operator knows
 * which lines belong to the block.
 */
export const fileBlock = defineModule({
  name: "file.block",
  summary: "Keeps lines of its own between two markers in a file.",
  alsoKnownAs: ["blockinfile", "file.blockreplace", "files.block"],
  args,
  refusals: [...editRefusals],
  step: (args, context) => {
    const block = blockLines(args, context);
    const given = { ...args, mode: args.mode ?? (block.sensitive ? "0600" : undefined) };
    const readState = sh`${copyLines(given.path)}
${findBlock(args)}`;
    const hash = `sha256:${block.blob.sha256}`;
    return {
      effects: effectsOfFile(given),
      want:
        given.state === "absent" ? { block: "absent" } : { kind: "file", block: block.sensitive ? "as wanted" : hash },
      probe: sh`${readState}
fact kind "$kind"
case $kind:$block in
  file:[1-9]*)
    sum=$(${inner} | sha256sum) || exit 1
    sum=\${sum%% *}
    ${block.sensitive ? compareSecret("block", block.blob.sha256) : sh`fact block "sha256:$sum"`}
    ;;
  file:* | absent:*) fact block "$block" ;;
  *) fact block unknown ;;
esac`,
      guard: sh`${readState}
${refuseEdit(given.path, given.create)}
case $block in
  half) refuse FILE_NOT_EDITABLE ${`${given.path} has one of the marker lines of the block ${given.name} without the other: put it right by hand`} ;;
  twice) refuse FILE_NOT_EDITABLE ${`${given.path} has the block ${given.name} more than once: take all but one away`} ;;
esac`,
      foresee: foreseeFile(given),
      keep: sh`keep_path ${given.path}`,
      apply: sh`${readState}
before= from= to=
case $block in
  [1-9]*) from=\${block% *} to=\${block#* } before=$from ;;
  absent) ${findPlace(given)} ;;
  *) exit 1 ;;
esac
from=$from to=$to awk 'BEGIN { for (n = ENVIRON["from"] + 0; n && n <= ENVIRON["to"] + 0; n++) print n }' >"$K_TMP/drop" || exit 1
${given.state === "absent" ? sh`: >"$K_TMP/text" || exit 1` : sh`{ printf '%s\n' ${begin(given)} && cat <${block.blob} && printf '%s\n' ${end(given)}; } >"$K_TMP/text" || exit 1`}
${putLines(given, splice)}`,
      ...(block.text === undefined
        ? {}
        : {
            show: sh`${readState}
case $block in [1-9]*) ${inner} ;; esac`,
            shown: block.text,
          }),
      ...(block.sensitive && { sensitive: true }),
      ...(given.validate === undefined && { quiet: true as const }),
    };
  },
});

function begin({ comment, name, commentEnd }: Args): string {
  return [comment, "BEGIN kcore", name, commentEnd].filter((word) => word !== "").join(" ");
}

function end({ comment, name, commentEnd }: Args): string {
  return [comment, "END kcore", name, commentEnd].filter((word) => word !== "").join(" ");
}

/**
 * The block's lines, each ended by LF: putLines gives a file with CR LF its own line ends.
 * @throws KcoreError STATE_STEP_INVALID
 */
function blockLines(
  args: Args,
  context: StepContext,
): { readonly blob: Blob; readonly text?: string; readonly sensitive: boolean } {
  const { blob, text, sensitive } = contentOf(args, context);
  const given = Buffer.from(blob.bytes ?? [])
    .toString("latin1")
    .replaceAll("\r\n", "\n");
  const lines = given === "" || given.endsWith("\n") ? given : `${given}\n`;
  if (lines.includes("\0")) throw unfit(`the content of the block ${args.name} holds a NUL byte`, "give lines of text");
  const markers = [begin(args), end(args)].map((marker) => Buffer.from(marker).toString("latin1"));
  if (lines.split("\n").some((line) => markers.includes(line)))
    throw unfit(`the content of the block ${args.name} holds its own marker lines`, "kcore writes them around it");
  const made = blobOf(Buffer.from(lines, "latin1"), { sensitive });
  return { blob: made, sensitive, ...(text !== undefined && { text: Buffer.from(lines, "latin1").toString("utf8") }) };
}

function unfit(message: string, hint: string): KcoreError {
  return new KcoreError({ code: "STATE_STEP_INVALID", message, hint });
}

/** Sets `block` to the line numbers of the block's two markers, or to absent, half (a marker is missing) or twice. */
function findBlock(args: Args): Sh {
  return sh`block=$(begin=${begin(args)} end=${end(args)} awk '
  ($0 "") == ENVIRON["begin"] { begins++; from = NR; if (open++) half = 1 }
  ($0 "") == ENVIRON["end"] { ends++; to = NR; if (open-- != 1) half = 1 }
  END { print(open || half ? "half" : (begins > 1 ? "twice" : (begins ? from " " to : "absent"))) }' <"$K_TMP/lines") || exit 1`;
}

/** Prints the lines between the markers of the block. */
const inner = sh`from=\${block% *} to=\${block#* } awk 'NR > ENVIRON["from"] + 0 && NR < ENVIRON["to"] + 0' <"$K_TMP/lines"`;
