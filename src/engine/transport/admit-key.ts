import { hostFailure } from "./host-problems.ts";
import type { Host } from "./host.ts";

/** A public key as a line of authorized_keys has it (sshd(8)), without options. */
export interface PublicKey {
  readonly type: string;
  /** The key blob (RFC 4253, section 6.6) in base64. */
  readonly key: string;
  readonly comment?: string;
}

/** Characters of output that are read: a login shell's greeting, and the answer. */
const maxOutput = 1 << 16;

/**
 * Adds the key that comes on stdin. Constant and fit for any login shell, as `Host.exec` requires. A key that the file has without options,
 * under any comment, is not added again. The file's last line can lack its line feed.
 */
const command = `exec /bin/sh -c 'umask 077; read -r type body comment && cd && mkdir -p .ssh || exit 1; f=.ssh/authorized_keys; key="$type $body"; if [ -f "$f" ] && grep -q -e "^$key\\$" -e "^$key " "$f"; then echo there; exit 0; fi; if [ -s "$f" ] && [ -n "$(tail -c 1 "$f")" ]; then echo; fi >>"$f" && printf "%s\\n" "$key\${comment:+ $comment}" >>"$f" || exit 1; if command -v restorecon >/dev/null 2>&1; then restorecon -R .ssh; fi'`;

/**
 * Adds a public key to the user's ~/.ssh/authorized_keys (sshd(8)), once, and keeps the other keys. Returns whether the key is new there.
 * @throws KcoreError KEY_NOT_ADMITTED, and as `Host.exec`
 */
export async function admitKey(host: Host, user: string, { type, key, comment = "" }: PublicKey): Promise<boolean> {
  const channel = await host.exec(command, { input: `${`${type} ${key} ${comment}`.trimEnd()}\n` });
  channel.end();
  let output = "";
  for await (const chunk of channel.stdout)
    // A node can print without end.
    if ((output += String(chunk)).length > maxOutput) break;
  const { code } = output.length > maxOutput ? { code: undefined } : await channel.exit;
  // A login shell can print a greeting before the answer.
  if (code === 0) return !/^there$/m.test(output);
  throw hostFailure({
    code: "KEY_NOT_ADMITTED",
    message: `${host.name} let ${user} log in, but did not take the key: ${channel.stderrTail().trim() || `exit ${code ?? "unknown"}`}`,
    hint: `is ~${user}/.ssh/authorized_keys there a file that ${user} may write?`,
  });
}
