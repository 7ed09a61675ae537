import { Command, Option } from "commander";
import { addProjectOption, collect } from "../options.ts";
import { writeUserData } from "./user-data.ts";

/** `kcore roster user-data`. */
export function userDataCommand(): Command {
  return addProjectOption(new Command("user-data").argument("<node>", "the new machine, by its name in the roster"))
    .description("Write what a new machine's cloud-init sets up at the first boot, and pin its host key beforehand")
    .addHelpText(
      "after",
      `
The output holds the machine's private host key: its reader can pose as the machine. kcore deletes no copy; delete yours after the
first boot.

Examples:
  kcore roster user-data n4 --iso n4.iso         a CD for a virtual machine, or for a machine's BMC
  kcore roster user-data n4 --seed n4            the files for /var/lib/cloud/seed/nocloud of an image
  kcore roster user-data n4 --key ops.pub        to stdout, for a cloud's form
  kcore roster user-data n4 --iso n4.iso --renew after a reinstall: another host key`,
    )
    .option("--key <file>", "a public key to log in with; else the one of identityFile (repeatable)", collect)
    .option("--seed <dir>", "write the files user-data, meta-data and network-config there")
    .option("--iso <file>", "write them as a CD image, which cloud-init finds by its label cidata")
    .option("--renew", "make another host key and pin it in place of the pinned ones")
    .addOption(new Option("-o, --output <format>", "how to print the result").choices(["text", "json"]).default("text"))
    .action(writeUserData);
}
