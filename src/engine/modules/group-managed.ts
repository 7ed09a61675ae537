import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AccountId, AccountName, accountLine, numberIsFree } from "../step/fragments/accounts.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * group.managed: { name: kcore, system: true }
 * ```
 * Manages groups of /etc/group, not groups of a directory service. Uses groupadd, groupmod and groupdel, or BusyBox's
 * addgroup and delgroup; a group's number can be changed only by groupmod.
 */
export const groupManaged = defineModule({
  name: "group.managed",
  summary: "Keeps a group of the node.",
  alsoKnownAs: ["group", "group.present", "group.absent", "server.group", "groupadd"],
  args: z
    .strictObject({
      name: AccountName.describe("The group."),
      gid: AccountId.optional().describe("The group's number; else, for a new group, the next free one."),
      system: z.boolean().default(false).describe("Take the number from the range for system groups, when made anew."),
      state: z.enum(["present", "absent"]).default("present").describe("Whether the group shall be there."),
    })
    .refine(({ name, state }) => state === "present" || name !== "root", "root is never removed"),
  refusals: ["TOOL_MISSING"],
  step: ({ name, gid, system, state }) => {
    const number = gid === undefined ? sh`` : sh`-g ${gid}`;
    return {
      effects: {
        writes: [{ is: "group", name, renumbers: gid !== undefined, goes: state === "absent" }],
        reads: [{ is: "group", name }],
      },
      want: { state, ...(gid === undefined || state === "absent" ? {} : { gid: String(gid) }) },
      probe: sh`${accountLine("/etc/group", name)}
if [ -z "$line" ]; then fact state absent; else
  fact state present
  rest=\${line#*:*:}
  fact gid "\${rest%%:*}"
fi`,
      foresee:
        state === "absent"
          ? sh`have groupdel || have delgroup || ${needGroupdel}
${accountLine("/etc/group", name)}
number=\${line#*:*:} number=\${number%%:*}
while IFS=: read -r user _ _ gid _; do
  [ "$gid" != "$number" ] || { echo "$user has it as primary group" >&2; exit 1; }
done </etc/passwd`
          : sh`${accountLine("/etc/group", name)}
if [ -n "$line" ]; then have groupmod || ${needGroupmod}; else have groupadd || have addgroup || ${needGroupadd}; fi
${gid === undefined ? sh`` : numberIsFree("/etc/group", name, gid)}`,
      apply:
        state === "absent"
          ? sh`if have groupdel; then groupdel ${name}
elif have delgroup; then delgroup ${name}
else ${needGroupdel}; fi`
          : sh`${accountLine("/etc/group", name)}
if [ -z "$line" ]; then
  if have groupadd; then groupadd ${system ? sh`-r` : sh``} ${number} ${name}
  elif have addgroup; then addgroup ${system ? sh`-S` : sh``} ${number} ${name}
  else ${needGroupadd}; fi
elif have groupmod; then groupmod ${number} ${name}
else ${needGroupmod}; fi`,
    };
  },
});

const needGroupadd = sh`refuse TOOL_MISSING "neither groupadd nor addgroup is there (package passwd)"`;
const needGroupmod = sh`refuse TOOL_MISSING "a group's number can be changed only by groupmod (package passwd)"`;
const needGroupdel = sh`refuse TOOL_MISSING "groupdel is not there (package passwd)"`;
