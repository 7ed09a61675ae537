import { Command, Option } from "commander";
import { addProjectOption, addResultOption } from "../options.ts";
import { editSecrets } from "./edit-secrets.ts";
import { makeIdentity } from "./keygen.ts";
import { checkSecrets, listSecrets } from "./list-secrets.ts";
import { addRecipient, listRecipients, removeRecipient } from "./recipients.ts";
import { rotateSecrets } from "./rotate.ts";
import { setSecret, showSecret } from "./value.ts";

/** `kcore secrets set|show|edit|list|check|rotate|recipients|keygen`. */
export function secretsCommand(): Command {
  const secrets = new Command("secrets")
    .description("Secrets, kept encrypted in git: of rosters, states and parameters")
    .addHelpText(
      "after",
      `
Examples:
  kcore secrets keygen                                       your identity, once; prints your recipient
  kcore secrets recipients add alice age1…
  kcore secrets set roster/dc1.yaml nodes.n1.sudo.password   asks for it, or takes it from a pipe
  kcore secrets edit roster/dc1.yaml
  kcore secrets check                                        in CI: no identity is needed`,
    );
  addProjectOption(secrets.command("set <file> <path>"))
    .description("Seal a value and put it into a file; no other line changes")
    .addHelpText(
      "after",
      `
The value is asked for at a terminal, or comes by stdin; never on the command line.

Examples:
  kcore secrets set roster/dc1.yaml nodes.n1.vars.token
  pwgen 32 1 | kcore secrets set roster/dc1.yaml groups.db.vars.password
  kcore secrets set states/web.yaml params.key.default --from-file tls.key`,
    )
    .option("--from-file <file>", "the value is what this file holds, which others must not be able to read")
    .action(setSecret);
  addTextOption(addProjectOption(secrets.command("show <file> <path>")))
    .description("Open one value and print it")
    .addHelpText("after", "\nExamples:\n  kcore secrets show roster/dc1.yaml nodes.n1.vars.token")
    .action(showSecret);
  addProjectOption(secrets.command("edit <file>"))
    .description("Edit a file with its secrets opened; those that stay the same keep their lines")
    .addHelpText(
      "after",
      `
Each secret stands there as “secret:VALUE”; a text that you write so becomes one. The editor is $VISUAL, $EDITOR or vi, on a copy
that only you can read, in memory if possible.

Examples:
  kcore secrets edit roster/dc1.yaml
  EDITOR='code --wait' kcore secrets edit states/web.yaml`,
    )
    .action(editSecrets);
  addResultOption(addProjectOption(secrets.command("list")))
    .description("List every sealed value and its recipients; needs no identity")
    .addHelpText("after", "\nExamples:\n  kcore secrets list\n  kcore secrets list -o json")
    .action(listSecrets);
  addResultOption(addProjectOption(secrets.command("check")))
    .description("Check sealed values: recipients other than recipients.yaml names, wrong places, damage")
    .addHelpText("after", "\nExamples:\n  kcore secrets check")
    .action(checkSecrets);
  addResultOption(addProjectOption(secrets.command("rotate")))
    .description("Re-encrypt every value of the project for the present recipients")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore secrets rotate\n  kcore secrets rotate --moved     after a file or a node was renamed",
    )
    .option("--moved", "also what stands at another place than it was sealed for; look at git diff first")
    .action(rotateSecrets);
  secrets.addCommand(recipientsCommand());
  addTextOption(secrets.command("keygen"))
    .description("Make an identity, which opens what is sealed to its recipient")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore secrets keygen\n  kcore secrets keygen --passphrase\n  kcore secrets keygen --file ci.txt --post-quantum",
    )
    .option("--file <file>", "where to; else KCORE_AGE_IDENTITY, or ~/.config/kcore/age-identity.txt")
    .option("--passphrase", "encrypt the identity by a passphrase, which kcore asks for at each use")
    .option("--post-quantum", "ML-KEM-768 with X25519 (age 1.3 and later); each value becomes 2 KB longer for it")
    .action(makeIdentity);
  return secrets;
}

function recipientsCommand(): Command {
  const recipients = new Command("recipients")
    .description("Manage who can decrypt the project's secrets: recipients.yaml")
    .addHelpText("after", "\nExamples:\n  kcore secrets recipients list\n  kcore secrets recipients add ci age1…");
  addResultOption(addProjectOption(recipients.command("list")))
    .description("List who can decrypt what is sealed from now on")
    .addHelpText("after", "\nExamples:\n  kcore secrets recipients list")
    .action(listRecipients);
  addProjectOption(recipients.command("add <name> [recipient]"))
    .description("Add a recipient; kcore secrets rotate re-encrypts what is sealed already")
    .addHelpText(
      "after",
      "\nWithout RECIPIENT, kcore adds the recipient of your own identity.\n\nExamples:\n  kcore secrets recipients add alice age1…\n  kcore secrets recipients add me",
    )
    .action(addRecipient);
  addProjectOption(recipients.command("remove <name>"))
    .description("Remove a recipient; assume that they know what they could open so far")
    .addHelpText("after", "\nExamples:\n  kcore secrets recipients remove alice")
    .action(removeRecipient);
  return recipients;
}

function addTextOption(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "how to print the result").choices(["text", "json"]).default("text"),
  );
}
