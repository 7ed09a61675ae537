import { z } from "zod";
import { omitUndefined } from "#base/omit-undefined.ts";
import { defineModule, type StepFacts } from "../step/define.ts";
import { AbsolutePath, UserName } from "../step/fields.ts";
import { AccountId, AccountName, accountLine, numberIsFree } from "../step/fragments/accounts.ts";
import { foreseePassword, PasswordHash, probePassword, setPassword, wantPassword } from "../step/fragments/password.ts";
import { ownersOf, type Effects, type NodeResource } from "../step/effects.ts";
import { sh, type Sh } from "../step/sh.ts";

const OneLine = z.string().regex(/^[^:\n\0]*$/, "must not hold a colon or a line break");

const args = z
  .strictObject({
    name: AccountName.describe("The user."),
    uid: AccountId.optional().describe("The user's number; else, for a new user, the next free one."),
    group: UserName.optional().describe("The primary group; else, for a new user, one of the same name."),
    groups: z.array(AccountName).optional().describe("Supplementary groups."),
    append: z.boolean().default(true).describe("Keep supplementary groups that are not named; false: exactly these."),
    shell: AbsolutePath.optional().describe("Login shell."),
    home: AbsolutePath.optional().describe("Home folder; an existing one is not moved."),
    createHome: z.boolean().default(false).describe("Make the home folder of a new user."),
    system: z.boolean().default(false).describe("Take the number from the range for system users, when made anew."),
    comment: OneLine.optional().describe("Full name or purpose (GECOS)."),
    password: PasswordHash.optional().describe("Password hash as in /etc/shadow; a secret of the roster."),
    lock: z.boolean().optional().describe("Whether login by password is locked."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the user shall be there."),
    removeHome: z.boolean().default(false).describe("With state: absent, remove home and mail too."),
  })
  .refine(({ name, state }) => state === "present" || name !== "root", "root is never removed")
  .refine(({ name, uid }) => name !== "root" || uid === undefined || uid === 0, "root's number is 0");

type Args = z.output<typeof args>;

/**
 * ```yaml
 * user.managed: { name: kcore, system: true, shell: /usr/sbin/nologin, home: /var/lib/kcore, groups: [adm] }
 * ```
 * Manages users of /etc/passwd, not users of a directory service. Uses useradd, usermod and userdel. With only BusyBox's
 * adduser, deluser and addgroup users are made and removed, and memberships added; a step that needs another change fails.
 */
export const userManaged = defineModule({
  name: "user.managed",
  summary: "Keeps a user of the node.",
  alsoKnownAs: ["user", "user.present", "user.absent", "server.user", "useradd", "account"],
  args,
  refusals: ["TOOL_MISSING"],
  step: (given) => ({
    effects: effectsOf(given),
    want: wantOf(given),
    probe: probeOf(given),
    foresee: given.state === "absent" ? sh`have userdel || have deluser || ${needUserdel}` : foreseeUser(given),
    apply: given.state === "absent" ? remove(given) : create(given),
  }),
});

function effectsOf({ name, uid, state, group, groups = [], home, createHome, removeHome }: Args): Effects {
  const account = { name, renumbers: uid !== undefined, goes: state === "absent" };
  const folder: NodeResource[] = createHome || removeHome ? [{ is: "tree", path: home ?? `/home/${name}` }] : [];
  const owned: NodeResource[] = group === undefined ? [{ is: "group", name }] : ownersOf({ group });
  return {
    writes: [
      { is: "user", ...account },
      ...(group === undefined ? [{ is: "group", ...account } as const] : []),
      ...folder,
    ],
    reads: [{ is: "user", name }, ...owned, ...groups.flatMap((one) => ownersOf({ group: one }))],
  };
}

function wantOf({ state, uid, group, groups, append, shell, home, comment, password, lock }: Args): StepFacts {
  if (state === "absent") return { state };
  return {
    state,
    ...(uid === undefined ? {} : { uid: String(uid) }),
    ...omitUndefined({ group }),
    ...(groups === undefined ? {} : { groups: sorted(groups, append) }),
    ...omitUndefined({ shell, home, comment }),
    ...wantPassword({ password, lock }),
  };
}

function sorted(groups: readonly string[], append: boolean): string {
  return [...new Set(groups)].sort().join(" ") || (append ? "" : "none");
}

function probeOf({ name, group, groups = [], append, password, lock }: Args): Sh {
  const wanted = ` ${groups.join(" ")} `;
  return sh`${accountLine("/etc/passwd", name)}
[ -n "$line" ] || { fact state absent; exit 0; }
fact state present
IFS=: read -r _ _ uid gid comment home shell <<END
$line
END
fact uid "$uid"; fact home "$home"; fact shell "$shell"; fact comment "$comment"
# The primary group is found by its number, the others by their lists of members; the others are sorted.
primary=$gid
groups=$(while IFS=: read -r group _ gid members; do
  case ,$members, in *${`,${name},`}*) ${append ? sh`case ${wanted} in *" $group "*) echo "$group" ;; esac` : sh`echo "$group"`} ;; esac
  [ "$gid" != "$primary" ] || ${typeof group === "string" && /^\d+$/.test(group) ? sh`fact group "$gid"` : sh`fact group "$group"`}
done </etc/group | sort | tr '\n' ' ')
groups=\${groups% }
fact groups "\${groups:-${append ? "" : "none"}}"
${probePassword({ name, password, lock })}`;
}

function remove({ name, removeHome }: Args): Sh {
  return sh`if have userdel; then userdel ${removeHome ? sh`-r` : sh``} ${name}
elif have deluser; then deluser ${removeHome ? sh`--remove-home` : sh``} ${name}
else ${needUserdel}; fi`;
}

/** For a dry run: fails if a program or a group is missing, or if another user has the number. */
function foreseeUser({ name, uid, group, groups = [], password, lock }: Args): Sh {
  const wanted = [...groups, ...(group === undefined ? [] : [group])].filter((one) => !/^\d+$/.test(one));
  return sh`${accountLine("/etc/passwd", name)}
if [ -z "$line" ]; then have useradd || have adduser || ${needUseradd}; else have usermod || have addgroup || ${needUsermod}; fi
${foreseePassword({ password, lock })}
for group in ${wanted}; do foresee_account /etc/group group "$group" || { echo "there is no group $group" >&2; exit 1; }; done
${uid === undefined ? sh`` : numberIsFree("/etc/passwd", name, uid)}`;
}

const needUseradd = sh`refuse TOOL_MISSING "neither useradd nor adduser is there (package passwd)"`;
const needUsermod = sh`refuse TOOL_MISSING "usermod is not there (package passwd)"`;
const needUserdel = sh`refuse TOOL_MISSING "userdel is not there (package passwd)"`;

function create(given: Args): Sh {
  const { name, uid, group, groups = [], append, shell, home, createHome, system, comment, password, lock } = given;
  const common = [...(uid === undefined ? [] : ["-u", uid]), ...(shell === undefined ? [] : ["-s", shell])];
  const add = [
    ...common,
    ...(home === undefined ? [] : ["-d", home]),
    ...(comment === undefined ? [] : ["-c", comment]),
    ...(groups.length === 0 ? [] : ["-G", groups.join(",")]),
    ...(system ? ["-r"] : []),
    createHome ? "-m" : "-M",
  ];
  const change = [
    ...common,
    ...(home === undefined ? [] : ["-d", home]),
    ...(comment === undefined ? [] : ["-c", comment]),
    ...(group === undefined ? [] : ["-g", group]),
    ...(groups.length === 0 && append ? [] : [append ? "-aG" : "-G", groups.join(",")]),
  ];
  const busybox = [
    ...common,
    ...(home === undefined ? [] : ["-h", home]),
    ...(comment === undefined ? [] : ["-g", comment]),
    ...(system ? ["-S"] : []),
    ...(createHome ? [] : ["-H"]),
    "-D",
  ];
  // useradd only warns of a missing shell, and then every login as this user fails.
  const isLogin = shell !== undefined && !/\/(nologin|false)$/.test(shell);
  return sh`${isLogin ? sh`[ -x ${shell} ] || refuse TOOL_MISSING ${`there is no shell ${shell}`}` : sh``}
${accountLine("/etc/passwd", name)}
user=$line
${
  group === undefined
    ? sh`${accountLine("/etc/group", name)}
# A group of the user's name may be there already; useradd would refuse it.
if [ -n "$line" ]; then set -- -g ${name}; else set -- -U; fi`
    : sh`set -- -g ${group}`
}
if [ -z "$user" ] && have useradd; then useradd ${add} "$@" ${name} || exit 1
elif [ -z "$user" ] && have adduser; then
  [ "$1" != -U ] || addgroup ${system ? sh`-S` : sh``} ${name} || exit 1
  adduser ${busybox} -G ${group ?? name} ${name} || exit 1
  for extra in ${groups}; do addgroup ${name} "$extra" || exit 1; done
elif [ -z "$user" ]; then ${needUseradd}
elif have usermod; then
  ${change.length === 0 ? sh`:` : sh`usermod ${change} ${name} || exit 1`}
elif have addgroup; then
  for extra in ${groups}; do addgroup ${name} "$extra" || exit 1; done
else ${needUsermod}; fi
${setPassword({ name, password, lock })}`;
}
