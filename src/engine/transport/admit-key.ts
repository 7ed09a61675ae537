import type { ParsedKey } from "ssh2";
import { hostFailure } from "./unreachable.ts";
import type { Host } from "./host.ts";

/** Constant, for any login shell, as `Host.exec` asks: the line is read from stdin. The last line there may lack its end. */
const command = `exec /bin/sh -c 'umask 077; IFS= read -r key && cd && mkdir -p .ssh || exit 1; f=.ssh/authorized_keys; if [ -f "$f" ] && grep -qxF -e "$key" "$f"; then exit 0; fi; if [ -s "$f" ] && [ -n "$(tail -c 1 "$f")" ]; then echo; fi >>"$f" && printf "%s\\n" "$key" >>"$f" || exit 1; if command -v restorecon >/dev/null 2>&1; then restorecon -R .ssh; fi'`;

/**
 * Puts the public half of a key into the user's ~/.ssh/authorized_keys (sshd(8)), once; what stands there stays.
 * @throws KcoreError KEY_NOT_ADMITTED
 */
export async function admitKey(host: Host, user: string, key: ParsedKey): Promise<void> {
  const channel = await host.exec(command, { input: `${key.type} ${key.getPublicSSH().toString("base64")} kcore\n` });
  channel.end();
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  for await (const _ of channel.stdout) continue;
  const { code } = await channel.exit;
  if (code === 0) return;
  throw hostFailure({
    code: "KEY_NOT_ADMITTED",
    message: `${host.name} let ${user} log in, but did not take the key: ${channel.stderrTail().trim() || `exit ${code ?? "unknown"}`}`,
    hint: `is ~${user}/.ssh/authorized_keys there a file that ${user} may write?`,
  });
}
