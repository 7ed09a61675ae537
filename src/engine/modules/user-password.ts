import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AccountName, accountLine } from "../step/fragments/accounts.ts";
import {
  foreseePassword,
  keepPassword,
  PasswordHash,
  probePassword,
  setPassword,
  wantPassword,
} from "../step/fragments/password.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * user.password: { name: ops, lock: true }
 * ```
 * The password of an existing user, by its hash (crypt(5)), which must be a secret: `password: "{{params.hash}}"` with a
 * parameter of type `secret`. `openssl passwd -6` or `mkpasswd -m yescrypt` makes a hash. A locked user stays locked unless
 * `lock: false`. If sudo asks for this password, kcore needs the new password for its next connection: give the step
 * `risk: connectivity`.
 */
export const userPassword = defineModule({
  name: "user.password",
  summary: "Keeps a user's password, by its hash, and whether it is locked.",
  alsoKnownAs: ["user", "user.present", "passwd", "chpasswd"],
  args: z
    .strictObject({
      name: AccountName.describe("The user."),
      password: PasswordHash.optional().describe("Password hash as in /etc/shadow; a secret of the roster."),
      lock: z.boolean().optional().describe("Whether login by password is locked; else as it is."),
    })
    .refine(({ password, lock }) => password !== undefined || lock !== undefined, "give password, lock or both"),
  refusals: ["TOOL_MISSING"],
  step: (given) => ({
    effects: { writes: [{ is: "user", name: given.name }], reads: [{ is: "user", name: given.name }] },
    want: { user: "present", ...wantPassword(given) },
    probe: sh`${accountLine("/etc/passwd", given.name)}
if [ -z "$line" ]; then fact user absent && exit 0; fi
fact user present
${probePassword(given)}`,
    foresee: sh`foresee_owner ${given.name} -
${foreseePassword(given)}`,
    keep: keepPassword(given.name),
    apply: sh`${accountLine("/etc/passwd", given.name)}
[ -n "$line" ] || { echo ${`there is no user ${given.name}`} >&2 && exit 1; }
${setPassword(given)}`,
    quiet: true,
  }),
});
