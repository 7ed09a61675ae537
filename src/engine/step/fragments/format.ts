import type { ErrorCode } from "#errors/codes.ts";
import type { Step } from "../define.ts";
import { sh, type Sh } from "../sh.ts";
import { deviceRefusals, diskTools } from "./disk.ts";
import { grantFunctions, wipeGranted } from "./granted.ts";
import { unmark } from "./unmark.ts";

/** A format that kcore makes on a whole device: a filesystem, a physical volume, a swap area, a LUKS container. */
export interface DeviceFormat {
  /** Sets `disk_name`, `device` and `name`, or refuses, as `findDevice` does. */
  readonly find: Sh;
  /** The device's id, and the name of its mark file: an empty mark means an unused device, a grant in it a begun wipe. */
  readonly guid: string;
  /** The type as blkid prints it. */
  readonly type: string;
  /** The UUID as blkid prints it; it proves later that kcore made the format. */
  readonly uuid: string;
  /** The wanted contents, for the refusal. */
  readonly wanted: string;
  /** The device's name in a grant. */
  readonly grant: string;
  /** Runs before the wipe and `make`, for example to make a key file. */
  readonly prepare?: Sh;
  /** The command that makes the format; the device is added as its last argument. */
  readonly make: Sh;
  readonly tool: { readonly command: string; readonly package: string };
}

/** The codes with which `stepOfFormat` and `findDevice` refuse. */
export const formatRefusals: readonly ErrorCode[] = [
  ...deviceRefusals,
  ...(["DISK_IN_USE", "DISK_NOT_SAVED", "FILESYSTEM_DIFFERS", "TOOL_MISSING"] as const),
];

/** Further texts of a step that manages a format. */
interface FormatExtras {
  /** Runs after the device is read, in probe, guard and apply. */
  readonly read?: Sh;
  /** Reports facts of the state that `read` has read. */
  readonly facts?: Sh;
  /** Further refusals. */
  readonly judge?: Sh;
  /** Runs in apply when the format is in order; `todo` is not empty if this step has made the format. */
  readonly after?: Sh;
}

const nothing = sh`:`;

export function stepOfFormat(
  format: DeviceFormat,
  { read = nothing, facts = nothing, judge = nothing, after = nothing }: FormatExtras = {},
): Required<Pick<Step, "probe" | "guard" | "apply" | "tools">> {
  const readAndJudge = sh`${readDevice(format)}
${read}
${judgeFormat(format)}
${judge}`;
  return {
    probe: sh`${readDevice(format)}
${read}
${factsOfFormat}
${facts}`,
    guard: readAndJudge,
    apply: sh`${readAndJudge}
${makeFormat(format)}
${after}
${awaitUdev}`,
    tools: diskTools,
  };
}

/** Finds and reads the device, past blkid's cache: sets `type`, `uuid`, `label` and `mark`. */
function readDevice({ find, guid }: DeviceFormat): Sh {
  return sh`${find}
mark=$K_STATE/fresh/${guid}
type=$(blkid -p -o value -s TYPE "$device" 2>/dev/null)
uuid=$(blkid -p -o value -s UUID "$device" 2>/dev/null)
label=$(blkid -p -o value -s LABEL "$device" 2>/dev/null)`;
}

/** The facts `device`, `type` and `uuid`. */
const factsOfFormat = sh`fact device "$device"
# With a mark the device is new, or a run died while it made the format.
if [ -e "$mark" ] && [ -n "$type" ]; then fact type "unfinished $type"; else fact type "\${type:-none}"; fi
fact uuid "\${uuid:-none}"`;

/**
 * Sets `todo`: empty for a device in order, else make or wipe. Refuses with FILESYSTEM_DIFFERS, DISK_IN_USE,
 * DISK_NOT_SAVED or TOOL_MISSING (requirement F-18). Follows `readDevice`.
 */
function judgeFormat({ type, uuid, wanted, grant, tool }: DeviceFormat): Sh {
  return sh`${grantFunctions}
todo=
if [ "$type" != ${type} ] || [ "$uuid" != ${uuid} ] || [ -e "$mark" ]; then
  todo=make
  refuse_users "$name"
  found=$(contents_of "$name")
  # A new device may hold old bytes without a signature, and a run that died leaves the wanted uuid: neither is data.
  if [ -e "$mark" ]; then
    case $type:$uuid in
      :) [ -s "$mark" ] || found=$(signatures_of "$device") ;;
      ${type}:${uuid}) found= ;;
    esac
  fi
  if [ -n "$found" ]; then
    is_granted "$disk_name" ${grant} "$mark" "$found" "$name" ||
      refuse FILESYSTEM_DIFFERS ${`wanted ${wanted} with UUID ${uuid} on `}"$device, which holds something else; if that may go: --grant $grant$K_NL$found"
    todo=wipe
  fi
  have ${tool.command} || refuse TOOL_MISSING ${`${tool.command} is not on this node; package ${tool.package} has it`}
fi`;
}

/** Carries out `todo` of `judgeFormat`, directly after it in the same shell, since names of devices can change. */
function makeFormat({ prepare = nothing, make }: DeviceFormat): Sh {
  return sh`${wipeGranted}
# A refused wipe must leave no mark: with a mark, the same grant would cover other contents, too.
begin() {
  mkdir -p "$K_STATE/fresh" || exit 1
  ${prepare}
  { [ "$todo" = make ] || echo "$grant"; } >"$mark" && sync || exit 1
}
if [ -n "$todo" ]; then
  if [ "$todo" = wipe ]; then wipe_granted "$name" "$judged" begin; else begin; fi
  ${make} "$device" || exit 1
  ${unmark(sh`"$mark"`)}
fi`;
}

/** Waits for udev's links by uuid and label, which mounts use. */
const awaitUdev = sh`! have udevadm || udevadm settle --timeout=10 || :`;
