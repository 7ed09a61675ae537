import { z } from "zod";
import { defineModule, type StepFacts } from "../step/define.ts";
import { AccountName, accountLine } from "../step/fragments/accounts.ts";
import { editKeys, findKeys } from "../step/fragments/authorized-keys.ts";
import { copyLines, refuseEdit } from "../step/fragments/edit.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { KeyOption, PublicKeyLine, type SshPublicKey } from "../step/fragments/public-keys.ts";
import type { Effects } from "../step/effects.ts";
import { rawSh, sh, type Sh } from "../step/sh.ts";

const args = z
  .strictObject({
    user: AccountName.describe("The user who may log in with the keys."),
    keys: z
      .union([PublicKeyLine.transform((key) => [key]), z.array(PublicKeyLine)])
      .describe("Public keys, one or a list: lines as in a .pub file."),
    options: z
      .array(KeyOption)
      .default([])
      .describe('Options of all these keys (sshd(8)): no-pty, from="192.0.2.0/24" …'),
    exclusive: z.boolean().default(false).describe("No other key is left in the file; comments are."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the keys shall be there."),
    path: z
      .string()
      .regex(/^(%h)?(\/[^\0\n/%]*(%[hu%][^\0\n/%]*)*)+$/, "must be absolute, or begin with %h")
      .refine((path) => !/\/\.{0,2}(\/|$)/.test(path), "must be normalised: no “..”, “.”, “//” or final “/”")
      .default("%h/.ssh/authorized_keys")
      .describe("The file, as sshd_config's AuthorizedKeysFile has it: %h is the home folder, %u the user, %% a %."),
  })
  .refine(({ keys, exclusive }) => keys.length > 0 || exclusive, "needs a key")
  .refine(({ exclusive, state }) => state === "present" || !exclusive, "exclusive is for state: present")
  .refine(({ options, state }) => state === "present" || options.length === 0, "options are for state: present")
  .refine(
    ({ keys }) => new Set(keys.map(({ base64 }) => base64)).size === keys.length,
    "the same key is there more than once",
  );

type Args = z.output<typeof args>;

/**
 * ```yaml
 * authorized_key.present:
 *   user: root
 *   keys: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEvHvQH+aUymWiPn6yVl0xaK+K77RBByvV0WFhkg2iyl ops@bastion
 *   options: [no-agent-forwarding]
 * ```
 * The file's other keys and comments stay. A key that is present already gets the options and, if the step gives one, the
 * comment on its line. In the home folder, which must exist, the step makes ~/.ssh (0700) and the file (0600) for the
 * user. If others could write to these two, their modes are corrected (sshd's StrictModes). `exclusive` locks out every
 * other key: give the step `risk: connectivity`. If sshd reports this session's own key (ExposeAuthInfo, without sudo), an
 * exclusive list without this key is refused.
 */
export const authorizedKeyPresent = defineModule({
  name: "authorized_key.present",
  summary: "Keeps SSH keys that let a user in.",
  alsoKnownAs: ["authorized_key", "ssh_auth.present", "server.user_authorized_keys"],
  args,
  refusals: ["FILE_INVALID", "FILE_NOT_EDITABLE", ...fileRefusals],
  step: (given) => {
    const readKeys = sh`${findFile(given)}
${copyLines(sh`"$file"`)}
${writeWantedKeys(given)}`;
    return {
      effects: effectsOf(given),
      want: wantOf(given),
      probe: sh`${readKeys}
tmp=$K_TMP awk ${findKeys} <"$K_TMP/lines" >"$K_TMP/facts" || exit 1
while read -r name value; do fact "$name" "$value"; done <"$K_TMP/facts"
${given.state === "absent" ? sh`` : probeAccess(given)}`,
      guard: sh`${readKeys}
${refuseEdit(sh`"$file"`, true)}
[ -n "$home" ] || refuse FILE_NOT_EDITABLE ${`there is no user ${given.user} in /etc/passwd: make it first (user.managed)`}
${inHome(given) ? sh`[ -d "$home" ] || refuse FILE_NO_PARENT ${`the home folder of ${given.user} is not there: `}"$home"` : sh``}
${given.exclusive ? refuseOwnKey(given) : sh``}`,
      foresee: sh`${findFile(given)}
${foresee(given)}`,
      keep: keep(given),
      apply: sh`${readKeys}
${given.keys.length === 0 ? sh`` : checkKeys(given)}
wanted=${given.state} exclusive=${given.exclusive ? "1" : ""} tmp=$K_TMP awk ${editKeys} <"$K_TMP/lines" >"$K_TMP/edited" || exit 1
[ -z "$crlf" ] || note "$file had CR LF at its lines' ends, which it has no more"
${put(given)}`,
      quiet: true,
    };
  },
});

function inHome({ path }: Args): boolean {
  return path.startsWith("%h/");
}

function effectsOf({ user, path }: Args): Effects {
  const resources = path.includes("%h") ? [] : [{ is: "path", path: path.replaceAll("%u", user) } as const];
  return {
    writes: [{ is: "user", name: user }, ...resources],
    reads: [{ is: "user", name: user }, { is: "owner", name: user }, ...resources],
  };
}

/** A key's form in the file, as facts show it: without its bytes. */
function keyFact({ type, comment }: SshPublicKey, options: readonly string[]): string {
  return [options.join(","), type, comment].filter((word) => word !== "").join(" ");
}

function wantOf({ keys, options, exclusive, state, path }: Args): StepFacts {
  return {
    ...Object.fromEntries(keys.map((key) => [key.fingerprint, state === "absent" ? "absent" : keyFact(key, options)])),
    ...(exclusive && { others: "none" }),
    ...(state === "present" && path.startsWith("%h/") && { access: "closed" }),
    ...(state === "present" && { kind: "file" }),
  };
}

/** Sets `uid`, `gid` and `home`, which are empty if there is no such user, `file` to the file of keys, and its `folder`. */
function findFile({ user, path }: Args): Sh {
  const parts = path.split(/(%[hu%])/).map((part) => {
    if (part === "%h") return sh`"\${home%/}"`;
    return part === "" ? sh`` : sh`${part === "%u" ? user : part === "%%" ? "%" : part}`;
  });
  return sh`${accountLine("/etc/passwd", user)}
uid= gid= home=
IFS=: read -r _ _ uid gid _ home _ <<END
$line
END
file=${parts.reduce((made, part) => sh`${made}${part}`, sh``)} folder=
[ -n "$home" ] || file=$K_TMP/nobody
folder=\${file%/*}`;
}

/** Writes the wanted keys to $K_TMP/keys, in the form that `findKeys` and `editKeys` read. */
function writeWantedKeys({ keys, options }: Args): Sh {
  const line = (key: SshPublicKey): string => {
    const whole = [options.join(","), key.type, key.base64, key.comment].filter((word) => word !== "").join(" ");
    return [key.base64, key.fingerprint, whole, key.comment === "" ? "any" : ""].join("\t");
  };
  return keys.length === 0
    ? sh`: >"$K_TMP/keys" || exit 1`
    : sh`printf '%s\n' ${keys.map(line)} >"$K_TMP/keys" || exit 1`;
}

/**
 * Reports the fact `kind`, and `access` in a home folder: sshd ignores a file that other users can write (sshd_config(5),
 * StrictModes). If other users can write to the home folder, put_file refuses.
 */
function probeAccess(given: Args): Sh {
  return sh`fact kind "$kind"
${
  inHome(given)
    ? sh`access=closed
for place in "$home" "$folder" "$file"; do
  [ -e "$place" ] || continue
  set -- $(stat -L -c '%u %a' -- "$place") || exit 1
  case $1 in 0 | "$uid") ;; *) access="$place belongs to user $1" ;; esac
  case $2 in *[2367]? | *[2367]) access="$place is $2" ;; esac
done
fact access "$access"`
    : sh``
}`;
}

/** Refuses if the node's ssh-keygen, and so its sshd, does not support the types of these keys. */
function checkKeys({ keys }: Args): Sh {
  return sh`if have ssh-keygen; then
  printf '%s\n' ${keys.map(({ type, base64 }) => `${type} ${base64}`)} >"$K_TMP/public" || exit 1
  output=$(ssh-keygen -l -f "$K_TMP/public" 2>&1) && [ "$(printf '%s\n' "$output" | grep -c SHA256:)" = ${keys.length} ] ||
    refuse FILE_INVALID "ssh-keygen on the node does not take all of the keys$K_NL$output"
fi`;
}

/** Patterns for `stat -L -c '%u %a'` of a folder of root or of the user that others can write to. */
const writableByOthers = rawSh('"0 "*[2367]? | "0 "*[2367] | "$uid "*[2367]? | "$uid "*[2367]');

/** In dry runs: checks only the folder if {@link put} takes others' write permission first, since its files are safe then. */
function foresee(given: Args): Sh {
  const { user } = given;
  if (!inHome(given)) return sh`foresee_place "$file" 8 0 - -`;
  return sh`case $(stat -L -c '%u %a' -- "$folder" 2>/dev/null) in
  ${writableByOthers}) foresee_place "$folder" 4 0 ${user} - ;;
  *) foresee_place "$file" 8 1 ${user} - ;;
esac`;
}

function put(given: Args): Sh {
  if (!inHome(given)) return sh`put_file "$K_TMP/edited" "$file" - - -`;
  const { user } = given;
  return sh`case $(stat -L -c '%u %a' -- "$folder" 2>/dev/null) in
  ${writableByOthers}) keep_folder "$folder" 0700 - - || exit 1 ;;
  "0 "* | "$uid "*) ;;
  *) keep_folder "$folder" 0700 ${user} "$gid" || exit 1 ;;
esac
mode=0600
case $(stat -c %a -- "$file" 2>/dev/null) in '' | *[2367]? | *[2367]) ;; *) mode=- ;; esac
put_file "$K_TMP/edited" "$file" "$mode" ${user} "$gid"`;
}

/** Refuses a list without this session's key, which sshd reports to the session's own user in SSH_USER_AUTH. */
function refuseOwnKey({ user, keys }: Args): Sh {
  return sh`if [ "$(id -un)" = ${user} ] && [ -r "\${SSH_USER_AUTH-}" ]; then
  while read -r way type key _; do
    [ "$way" = publickey ] || continue
    case " "${keys.map(({ base64 }) => base64).join(" ")}" " in
      *" $key "*) ;;
      *) refuse FILE_NOT_EDITABLE ${`the key by which this session came in as ${user} is not in the exclusive list: name it too`} ;;
    esac
  done <"$SSH_USER_AUTH"
fi`;
}

/** In a user's own folder the revert runs as that user, so that the user's links cannot make it change other users' files. */
function keep(given: Args): Sh {
  const { user } = given;
  if (!inHome(given))
    return sh`${findFile(given)}
keep_path "$file"`;
  return sh`${findFile(given)}
if [ "$uid" = 0 ]; then
  [ -d "$folder" ] || keep_path "$folder"
  keep_path "$file"
else
  trial_number || exit 1
  number=$k_number
  printf '%s\n' "$file" >"$k_trial/$number.keys" || exit 1
  if open_file "$file"; then
    cat <&9 >>"$k_trial/$number.keys" || exit 1
    on_revert ${`su -s /bin/sh ${user} -c 'umask 077; IFS= read -r f && cat >"$f.kcore" && mv -f "$f.kcore" "$f"' <./`}"$number.keys"
  else
    on_revert ${`su -s /bin/sh ${user} -c 'IFS= read -r f && rm -f "$f"' <./`}"$number.keys"
  fi
fi`;
}
