import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, Sha256, UserName } from "../step/fields.ts";
import { archiveFormatOf, archiveFormats, archiveTools, unpackHere } from "../step/fragments/archive.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { ownersOf, type NodeResource } from "../step/effects.ts";
import { sh, type Sh } from "../step/sh.ts";

const args = z
  .strictObject({
    path: AbsolutePath.refine((path) => path !== "/", "must not be /").describe(
      "The folder for the archive's files alone.",
    ),
    source: z.string().optional().describe("The archive: a file of the project."),
    archive: AbsolutePath.optional().describe("The archive, as a file on the node; instead of source."),
    sha256: Sha256.optional().describe(
      "The SHA-256 of the archive on the node; with it the archive is needed only when it is unpacked.",
    ),
    format: z.enum(archiveFormats).optional().describe("The archive's format; by default its file name tells."),
    strip: z
      .number()
      .int()
      .min(0)
      .max(20)
      .default(0)
      .describe("The number of leading folders to strip from the archive's names."),
    owner: UserName.default("root").describe("Owner of the unpacked files and folders."),
    group: UserName.default("root").describe("Group of the unpacked files and folders."),
    makeDirs: z.boolean().default(false).describe("Make the missing folders above path."),
    clean: z.boolean().default(false).describe("Let a new unpacking delete other files of the folder."),
  })
  .refine(({ source, archive }) => (source === undefined) !== (archive === undefined), "give one of source and archive")
  .refine(({ archive, sha256 }) => archive !== undefined || sha256 === undefined, "sha256 is for archive")
  .refine(
    ({ source, archive, format }) => (format ?? archiveFormatOf(source ?? archive ?? "")) !== undefined,
    `the name does not tell the format: give format, one of ${archiveFormats.join(", ")}`,
  );

/**
 * ```yaml
 * archive.extracted:
 *   path: /opt/example-1.2.3
 *   archive: /var/cache/example-1.2.3.tar.gz
 *   sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *   strip: 1
 * ```
 * The archive is unpacked beside the folder, which is then replaced as a whole: no reader sees a part of the archive. The
 * file `.kcore-archive` in the folder records the archive and its files. After a change of the archive, or of a file from
 * it, the archive is unpacked again. Before each unpacking, a folder with other files is refused; `clean` allows other
 * files in a folder that has the record. An archive with absolute paths, `..`, links that lead out, devices or setuid is
 * refused. Without `sha256` an archive on the node must stay there, to be compared.
 */
export const archiveExtracted = defineModule({
  name: "archive.extracted",
  summary: "Keeps an archive unpacked in a folder.",
  alsoKnownAs: ["unarchive", "tar", "unzip"],
  args,
  refusals: ["ARCHIVE_INVALID", "ARCHIVE_UNSAFE", "FILE_MOUNTED", "FILE_NOT_EMPTY", "TOOL_MISSING", ...fileRefusals],
  step: (given, context) => {
    const { path, source, archive, strip, owner, group, makeDirs, clean } = given;
    const name = source ?? archive ?? "";
    const format = given.format ?? archiveFormatOf(name) ?? "tar";
    const blob = source === undefined ? undefined : context.readFile(source);
    const sha256 = blob?.sha256 ?? given.sha256;
    const from = blob ?? sh`"$K_TMP/archive"`;
    const ownerAndStrip = `${owner}:${group}, strip ${strip}`;
    const parents: readonly NodeResource[] = makeDirs ? [{ is: "parents", path }] : [];
    const archiveResource: readonly NodeResource[] = archive === undefined ? [] : [{ is: "existing", path: archive }];
    const noArchive = sh`refuse ARCHIVE_INVALID ${`${archive ?? ""} is not on the node, or is no file`}`;
    return {
      brings: true,
      effects: {
        writes: [{ is: "tree", path }, ...parents],
        reads: [{ is: "tree", path }, ...ownersOf({ owner, group }), ...archiveResource],
      },
      want: {
        kind: "directory",
        archive: sha256 === undefined ? "as on the node" : `sha256:${sha256}`,
        as: ownerAndStrip,
        tree: "whole",
      },
      probe: sh`kind_of ${path}
fact kind "$kind"
[ "$kind" = directory ] || exit 0
${readRecord(path)}
${sha256 === undefined ? sh`[ ! -f ${archive ?? ""} ] || { now=$(sha256sum <${archive ?? ""}) && [ "$sum" = "sha256:\${now%% *}" ] && sum="as on the node"; }` : sh``}
fact archive "$sum"
fact as "$as"
[ "$as" != none ] || exit 0
${listTree(path)}
lost=$(awk 'FILENAME == ARGV[1] { there[$0] = 1; next } FNR > 2 && !($0 in there) { ${toName}; print }' "$K_TMP/tree" "$K_TMP/record" | sed 10q | tr '\n' ' ') || exit 1
if [ -z "$lost" ]; then fact tree whole; else fact tree "gone or changed: \${lost% }"; fi`,
      guard: sh`guard_directory ${path}
${archive === undefined ? sh`` : sh`unsure || [ -f ${archive} ] || ${noArchive}`}
${guardOthers(path, clean)}`,
      foresee: sh`foresee_place ${path} 4 ${makeDirs ? 1 : 0} ${owner} ${group}`,
      apply: sh`${
        archive === undefined
          ? sh`sum=${sha256 ?? ""}`
          : sh`[ -f ${archive} ] || ${noArchive}
(safe_parents ${archive}) || exit
# A private copy is hashed and unpacked, since the owner of the archive could change the archive in between.
(umask 077 && cat ${archive} >${from}) && sum=$(sha256sum <${from}) && sum=\${sum%% *} || exit 1
${sha256 === undefined ? sh`` : sh`[ "$sum" = ${sha256} ] || refuse ARCHIVE_INVALID ${`${archive} has another SHA-256`}"$K_NL""wanted "${sha256}"$K_NL""found  $sum"`}`
      }
parent_of ${path} ${makeDirs ? 1 : 0} ${owner}
(
  k_enter ${path} ${owner}
  # Removes the folders that a killed shell left: k_aside removes only files.
  for old in ./.kcore-"$k_key"-*; do [ ! -d "$old" ] || [ -L "$old" ] || (k_private "$old" && rm -rf ./t ./old); done
  k_aside
  (
    ${unpackHere({ format, from, name, strip })}
    chown -R -h ${`${owner}:${group}`} . || exit 1
    ${listTree(".")}
    { printf '%s\n' "sha256:$sum" ${ownerAndStrip} && cat "$K_TMP/tree"; } >./.kcore-archive && chmod 0644 ./.kcore-archive && sync || exit 1
    printf '%s\n' "$tree" >"$K_TMP/where"
  ) && read -r tree <"$K_TMP/where" && { [ ! -d ../${base(path)} ] || mv -T ../${base(path)} ./old; } &&
    { mv -T "$tree" ../${base(path)} || { [ ! -d ./old ] || mv -T ./old ../${base(path)}; false; }; }
  status=$?
  rm -rf ./t ./old
  k_leave_flushed "$status"
)${
        archive === undefined
          ? sh``
          : sh`
status=$?
rm -f ${from}
exit "$status"`
      }`,
      tools: archiveTools(format),
      timeout: 3600,
      stall: 300,
    };
  },
});

function base(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/**
 * Sets `sum` and `as` from the record `.kcore-archive`, or to none, and copies the record to $K_TMP/record. open_file
 * follows no link, since another user may own the folder.
 */
function readRecord(path: string): Sh {
  return sh`sum=none as=none
(open_file ${path}/.kcore-archive && cat <&9) >"$K_TMP/record" 2>/dev/null
[ ! -s "$K_TMP/record" ] || { read -r sum && read -r as; } <"$K_TMP/record" || as=none`;
}

/** Writes $K_TMP/tree: for each entry but folders a line of mode, owner, group, size, modification time and name. */
function listTree(path: string): Sh {
  return sh`(cd ${path} && find . ! -type d ! -path ./.kcore-archive -exec stat -c '%f %u %g %s %Y %N' {} + | sort) >"$K_TMP/tree" || exit 1`;
}

/** A command of awk: leaves only the name of a line of $K_TMP/tree. */
const toName = sh`sub(/^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* /, "")`;

/** Refuses a folder with mount points or other files than the archive's. `clean` allows other files if the folder has the record. */
function guardOthers(path: string, clean: boolean): Sh {
  return sh`[ ! -d ${path} ] || {
  mounts=$(mounts_under ${path}) || exit 1
  [ -z "$mounts" ] || refuse FILE_MOUNTED ${`${path} is or holds a mount point: unpack to a folder beneath it`}"$K_NL$mounts"
  ${readRecord(path)}
  ${listTree(path)}
  if [ "$as" = none ]; then others=$(find ${path} -mindepth 1 -maxdepth 1 | sed 10q)
  else ${clean ? sh`others=` : sh`others=$(awk '{ ${toName} } FILENAME == ARGV[1] { ours[$0] = 1; next } !($0 in ours)' "$K_TMP/record" "$K_TMP/tree" | sed 10q)`}; fi
  [ -z "$others" ] || refuse FILE_NOT_EMPTY ${`${path} holds files that no archive of this step brought: move them away${clean ? "" : " (after an earlier archive, clean: true lets them go)"}`}"$K_NL$others"
}`;
}
