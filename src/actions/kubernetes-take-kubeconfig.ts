import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { TextOrSecret } from "#engine/step/fields.ts";
import { secret } from "#engine/step/secret.ts";
import { readNodeAccess } from "#kubernetes/kubeconfig.ts";
import { AuthorityName, CertificateName } from "./foreign-authority.ts";
import { InProject } from "./in-project.ts";
import { kubeconfigOf } from "./kubernetes-kubeconfig.ts";
import { keepFile } from "./local-file.ts";

const Args = z.strictObject({
  file: InProject.describe(
    "The kubeconfig's file in the project, such as .kcore/k3s.conf; only its owner may read it.",
  ),
  content: TextOrSecret.describe("The node's kubeconfig; kcore takes only CA and credentials from it."),
  server: z.url({ protocol: /^https$/ }).describe("Where the API server is reached from this machine."),
  cluster: AuthorityName.default("kubernetes").describe("The cluster's name in the file."),
  user: CertificateName.default("kubernetes-admin").describe("The user's name in the file."),
});

/**
 * Writes a kubeconfig with the server that the orchestration names, and the CA and credentials of a kubeconfig read on a node, such as k3s'.
 * A node's kubeconfig that names programs or files is refused. The output `kubeconfig` is the path of the written file.
 * ```yaml
 * - { id: admin, run: kubernetes.takeKubeconfig, each: "role:first", file: .kcore/k3s.conf, server: "https://{{hostPort node.address 6443}}", content: "{{stages.told.kubeconfig.facts.content}}" }
 * ```
 */
export const kubernetesTakeKubeconfig = defineAction({
  name: "kubernetes.takeKubeconfig",
  outputs: ["kubeconfig"],
  summary: "Keeps a kubeconfig on this machine with the CA and the credentials of one that a node told.",
  bastionNames: ["file", "server"],
  args: Args,
  run: keep,
  plan: keep,
});

async function keep(
  { file, content, ...names }: z.output<typeof Args>,
  context: Parameters<typeof keepFile>[1],
): ReturnType<typeof keepFile> {
  const text = secret(kubeconfigOf({ ...names, ...readNodeAccess(content) }));
  const { changed } = await keepFile({ path: file, content: text, mode: "0600" }, context);
  return { changed, outputs: { kubeconfig: file } };
}
