import { join } from "node:path";
import { Command } from "commander";
import { usageError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { nameCluster, fromProject } from "../project/project-cluster.ts";
import { projectFile, readSettings } from "../project/project-settings.ts";
import { describeCurrent, makeCluster } from "./new-cluster.ts";
import { addProjectOption, caPassphrase, collect, type CommonFlags } from "../options.ts";

interface CreateFlags extends CommonFlags {
  readonly controller?: readonly string[];
  readonly passphraseFile?: string;
  readonly force?: boolean;
}

/** `kcore create cluster`. */
export function createCommand(): Command {
  const create = new Command("create")
    .description("Create a cluster, or records of VMs, networks and images in one")
    .addHelpText(
      "after",
      `
Examples:
  kcore create cluster
  kcore create cluster --context lab --controller 192.0.2.11:9090 --passphrase-file ~/ca-passphrase
  kcore create vm web --cpus 2 --memory 4GiB --dc DC1`,
    );
  addProjectOption(create.command("cluster"))
    .description("Make the root CA, a sub-CA and the operator's certificate on this machine, with a context")
    .option(
      "--controller <host:port>",
      "a controller that is known already (repeatable); deploy_node adds those that it deploys",
      collect,
    )
    .option(...caPassphrase)
    .option(
      "--force",
      "put an existing context of that name aside; make the cluster even if controllers of another one answer",
    )
    .addHelpText("after", "\nExamples:\n  kcore create cluster --context lab --controller 192.0.2.11:9090")
    .action(createTheCluster);
  return create;
}

async function createTheCluster({
  context = "default",
  controller = [],
  passphraseFile,
  force = false,
  project,
}: CreateFlags): Promise<void> {
  const place = fromProject(project, (found) => ({ found, named: readSettings(found).cluster }));
  if (place?.named !== undefined && place.named !== context)
    throw usageError(
      `${join(place.found, projectFile)} says that this project is of the cluster “${place.named}”`,
      `change cluster: in ${projectFile}, or make another project: kcore init DIR --context ${context}`,
    );
  const created = await makeCluster({
    context,
    controllers: controller,
    force,
    ...omitUndefined({ passphraseFile, project }),
  });
  const isUnnamed = place && place.named === undefined;
  if (isUnnamed) await nameCluster(place.found, context);
  const { current } = created;
  if (created.aside !== undefined) process.stdout.write(`the former context lies in ${created.aside} now\n`);
  process.stdout.write(
    [
      `created the cluster “${context}” in ${created.folder}; ${describeCurrent(context, current)}`,
      ...(isUnnamed ? [`${join(place.found, projectFile)} names it: commands in this project are about it`] : []),
      "its CA keys are encrypted: keep the passphrase, no node is deployed without it",
      "they lie on this machine alone: kcore cluster backup FILE",
      "next: kcore orchestrate deploy_node NODE",
      "",
    ].join("\n"),
  );
}
