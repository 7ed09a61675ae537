import { z } from "zod";
import { Secret } from "../secret.ts";
import { sh, type Sh } from "../sh.ts";
import { accountLine } from "./accounts.ts";

/** A hash as crypt(5) makes it, or `*`, which no password matches (shadow(5)). */
const hash = /^(?:\*|\$[0-9a-z]+\$[^\s:]+)$/;

/** The argument `password`: a hash, as a secret. */
export const PasswordHash = z
  .instanceof(Secret, { error: "must be a secret of the roster: a hash is as good as a weak password" })
  .refine(
    (password) => hash.test(password.reveal()),
    "is no hash of crypt(5): make one with `openssl passwd -6` or `mkpasswd -m yescrypt`; `lock` locks it",
  );

/** A user's wanted hash and lock; an absent value is not managed. */
export interface Password {
  readonly name: string;
  readonly password?: Secret | undefined;
  readonly lock?: boolean | undefined;
}

/** The wanted values of {@link probePassword}'s facts. */
export function wantPassword({ password, lock }: Omit<Password, "name">): Readonly<Record<string, string>> {
  return {
    ...(password === undefined ? {} : { password: "as wanted" }),
    ...(lock === undefined ? {} : { login: lock ? "locked" : "open" }),
  };
}

/** Reports the facts `password` and `login` from the user's line in shadow(5). */
export function probePassword({ name, password, lock }: Password): Sh {
  if (password === undefined && lock === undefined) return sh``;
  return sh`${readHash(name)}
${password === undefined ? sh`` : sh`if [ "\${hash#!}" = ${password} ]; then fact password "as wanted"; else fact password different; fi`}
case $hash in
  ! | !!) fact login ${lock === true ? "locked" : "open"} ;; # no password at all: nothing to unlock
  !*) fact login locked ;;
  *) fact login open ;;
esac`;
}

/** For a dry run: refuses if the programs of {@link setPassword} are missing. */
export function foreseePassword({ password, lock }: Omit<Password, "name">): Sh {
  if (password !== undefined) return sh`${findChpasswd}`;
  return lock === undefined ? sh`` : sh`have usermod || have passwd || ${needUsermod}`;
}

/**
 * Sets the hash, and locks or unlocks the user; one command does both. Without `lock` a locked user stays locked.
 */
export function setPassword({ name, password, lock }: Password): Sh {
  if (password !== undefined)
    return sh`${findChpasswd}
${readHash(name)}
mark=${lock === true ? "!" : ""}
${lock === undefined ? sh`case $hash in ! | !!) ;; !*) mark=! ;; esac` : sh``}
printf '%s:%s%s\n' ${name} "$mark" ${password} | $chpasswd -e || exit 1`;
  if (lock === undefined) return sh``;
  return sh`if have usermod; then usermod ${lock ? "-L" : "-U"} ${name}
elif have passwd; then passwd ${lock ? "-l" : "-u"} ${name}
else ${needUsermod}; fi || exit 1`;
}

/** Before a change on trial: records the present hash for the revert. */
export function keepPassword(name: string): Sh {
  return sh`${findChpasswd}
${readHash(name)}
trial_number && printf '%s:%s\n' ${name} "$hash" >"$k_trial/$k_number.hash" && on_revert "$chpasswd -e <./$k_number.hash" || exit 1`;
}

function readHash(name: string): Sh {
  return sh`${accountLine("/etc/shadow", name)}
hash=\${line#*:}
hash=\${hash%%:*}`;
}

const needUsermod = sh`refuse TOOL_MISSING "neither usermod nor passwd is there (package passwd)"`;

/** Sets `chpasswd` to the program, which may be an applet of BusyBox without a link. */
const findChpasswd = sh`chpasswd=chpasswd
have chpasswd || { have busybox && busybox --list | grep -qx chpasswd && chpasswd='busybox chpasswd'; } ||
  refuse TOOL_MISSING "chpasswd is not there (package passwd)"`;
