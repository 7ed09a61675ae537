import { z } from "zod";
import { defineModule, type StepContext } from "../step/define.ts";
import { diskGuid, DiskId, diskName } from "../step/disk-names.ts";
import { exclusiveOpen } from "../step/fragments/exclusive-open.ts";
import { clearFunctions, ownFunctions } from "../step/fragments/clear.ts";
import { diskFunctions } from "../step/fragments/disk-functions.ts";
import { diskTools } from "../step/fragments/disk.ts";
import { unmark } from "../step/fragments/unmark.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

/**
 * ```yaml
 * disk.cleared:
 *   disks: [{ serial: S3Z8NB0K }, { serial: S3Z8NB1M }]
 * ```
 * Checks all disks of a deployment before it wipes the first one. Each must be blank, have a table that kcore made, or
 * hold data that was granted by name (requirement F-18) and is wiped. The step is for a live system: an installed system
 * may use disks, and no grant overrides use. kcore's own tables are left to `disk.partitioned`; with `own: true` they are
 * contents as any other.
 */
export const diskCleared = defineModule({
  name: "disk.cleared",
  summary: "Keeps disks free of foreign data: checks all disks, then wipes the granted ones.",
  alsoKnownAs: ["wipefs", "blkdiscard", "zap"],
  args: z.strictObject({
    disks: z
      .array(DiskId)
      .min(1)
      .max(256)
      .describe("The disks, by serial, wwn, byId, busPath, model or size; entries of the roster's disks fit."),
    own: z
      .boolean()
      .default(false)
      .describe("Wipe kcore's own tables and their contents, too; they need a grant as well."),
  }),
  refusals: ["DISK_AMBIGUOUS", "DISK_HAS_DATA", "DISK_IN_USE", "DISK_NOT_FOUND", "DISK_NOT_SAVED"],
  step: ({ disks, own }, context) => {
    const resources = disks.map((disk) => ({ is: "disk", name: diskName(disk).value }) as const);
    const ifForeign = (body: Sh) =>
      own
        ? body
        : sh`is_ours "$3" || {
  ${body}
}`;
    // Runs `body` for a foreign disk that is not blank, after the checks that the disk is not in use and was granted.
    const ifGranted = (body: Sh) =>
      ifForeign(sh`found=$(all_contents)
  [ -n "$found" ] || return 0
  judge_use
  judge_contents "$2"${own ? sh` ''` : sh``}
  ${body}`);
    return {
      effects: { writes: resources, reads: resources },
      want: Object.fromEntries(disks.map((disk) => [factOf(disk), "free"])),
      probe: sh`summary=
${eachDisk(
  disks,
  context,
  sh`state=free holds="a table of kcore's"
  ${ifForeign(sh`holds=blank
  [ -z "$(all_contents)" ] || state='holds data'`)}
  fact "disk $2" "$state"
  [ "$state" != free ] || summary="$summary\${summary:+$K_NL}$(about_disk "$disk_name"): $holds"`,
  ownFunctions,
)}
# A dry run names the disks even if there is nothing to do.
[ -z "$K_DRY" ] || [ -z "$summary" ] || note "$summary"`,
      guard: sh`judge_open() { users=$(refused_disk "$disk"); }
${eachDisk(disks, context, ifGranted(sh`note_wipe "$found"`))}`,
      // The process that writes finds and checks each disk again, and opens it exclusively.
      apply: sh`${exclusiveOpen}
judge_open() { hold "$disk" || :; users=$unheld; }
${eachDisk(
  disks,
  context,
  ifGranted(sh`[ -z "$found" ] || clear_disk
  release
  blockdev --rereadpt "$disk" 2>/dev/null
  ! have udevadm || udevadm settle --timeout=10
  ${unmark(sh`"$mark"`)}`),
)}`,
      tools: diskTools,
      timeout: 300,
    };
  },
});

function factOf(disk: DiskId): string {
  return `disk ${diskName(disk).value}`;
}

/** Runs `body` for each disk, after `functions`. $1 and $2 are the kind and value of the disk's name, $3 the GUID of kcore's table. */
function eachDisk(disks: readonly DiskId[], context: StepContext, body: Sh, functions = clearFunctions): Sh {
  return sh`${diskFunctions}
${functions}
each_disk() {
  find_disk "$1" "$2"
  mark=$K_STATE/fresh/$3 describe="disk $disk ($1 $2)" found=
  ${body}
}
${shLines(
  disks.map((disk) => {
    const { kind, value } = diskName(disk);
    return sh`each_disk ${[kind, value, diskGuid(context, disk)]}`;
  }),
)}`;
}
