import { Command } from "commander";
import { addProjectOption } from "../options.ts";
import { openSsh, type SshOptions } from "./open-ssh.ts";

/** `kcore ssh NODE [-- CMD…]`. */
export function sshCommand(): Command {
  return addProjectOption(new Command("ssh"))
    .description("Log in to a node by this machine's ssh, the way the roster says; with a command, run it there")
    .argument("<node>", "the node")
    .argument("[command...]", "words for a shell there, joined by blanks, as ssh(1) joins them")
    .option("--no-sudo", "as the login user, not as root")
    .option("--print", "print the ssh command in place of running it; its configuration stays in .kcore/ssh/NODE")
    .addHelpText(
      "after",
      `
Examples:
  kcore ssh n1
  kcore ssh n1 -- 'journalctl -b | tail'
  kcore ssh --no-sudo n1
  kcore ssh --print n1
  rsync -a -e 'ssh -F .kcore/ssh/n1/config' site/ 192.0.2.11:/srv/site/

User, port, key, jump hosts and the pinned host keys are the roster's; everything else is your
ssh_config's. ssh asks for the passphrase of a key, sudo for a password. The exit code is ssh's.`,
    )
    .action((node: string, words: readonly string[], options: SshOptions) =>
      openSsh(node, words.length === 0 ? undefined : words.join(" "), options),
    );
}
