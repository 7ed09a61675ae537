import type { Action } from "#engine/orchestrate/action.ts";

/** Every action by its name; each is loaded at its first use. */
const loaders: ReadonlyMap<string, () => Promise<Action>> = new Map<string, () => Promise<Action>>([
  ["cluster.checkNode", async () => (await import("./cluster-check-node.ts")).clusterCheckNode],
  ["cluster.checkRemoved", async () => (await import("./cluster-check-removed.ts")).clusterCheckRemoved],
  ["cluster.health", async () => (await import("./cluster-health.ts")).clusterHealth],
  ["cluster.record", async () => (await import("./cluster-record.ts")).clusterRecord],
  [
    "cluster.registerController",
    async () => (await import("./cluster-register-controller.ts")).clusterRegisterController,
  ],
  ["cluster.removeController", async () => (await import("./cluster-remove-controller.ts")).clusterRemoveController],
  ["cluster.removeNode", async () => (await import("./cluster-remove-node.ts")).clusterRemoveNode],
  ["cluster.waitReady", async () => (await import("./cluster-wait-ready.ts")).clusterWaitReady],
  ["confirm", async () => (await import("./confirm.ts")).confirmAction],
  ["kubernetes.kubeconfig", async () => (await import("./kubernetes-kubeconfig.ts")).kubernetesKubeconfig],
  ["kubernetes.takeKubeconfig", async () => (await import("./kubernetes-take-kubeconfig.ts")).kubernetesTakeKubeconfig],
  ["kubernetes.node", async () => (await import("./kubernetes-node.ts")).kubernetesNode],
  ["kubernetes.object", async () => (await import("./kubernetes-object.ts")).kubernetesObject],
  ["local.command", async () => (await import("./local-command.ts")).localCommand],
  ["local.file", async () => (await import("./local-file.ts")).localFile],
  ["nodes.passed", async () => (await import("./nodes-passed.ts")).nodesPassed],
  ["node.hooks", async () => (await import("./node-hooks.ts")).nodeHooks],
  ["node.remains", async () => (await import("./node-remains.ts")).nodeRemains],
  ["roster.removeNode", async () => (await import("./roster-remove-node.ts")).rosterRemoveNode],
  ["secret.take", async () => (await import("./secret-take.ts")).secretTake],
  ["store.export", async () => (await import("./store-export.ts")).storeExport],
  ["nixos.config", async () => (await import("./nixos-config.ts")).nixosConfig],
  ["system.image", async () => (await import("./system-image.ts")).systemImage],
  ["pki.checkPassphrase", async () => (await import("./pki-check-passphrase.ts")).pkiCheckPassphrase],
  ["pki.createAuthority", async () => (await import("./pki-create-authority.ts")).pkiCreateAuthority],
  ["pki.createCluster", async () => (await import("./pki-create-cluster.ts")).pkiCreateCluster],
  ["pki.escrow", async () => (await import("./pki-escrow.ts")).pkiEscrow],
  ["pki.escrowKey", async () => (await import("./pki-escrow-key.ts")).pkiEscrowKey],
  ["pki.issueCertificate", async () => (await import("./pki-issue-certificate.ts")).pkiIssueCertificate],
  ["pki.issueNode", async () => (await import("./pki-issue-node.ts")).pkiIssueNode],
  ["runtime.build", async () => (await import("./runtime-build.ts")).runtimeBuild],
  ["update.begin", async () => (await import("./update-begin.ts")).updateBegin],
  ["update.hook", async () => (await import("./update-hook.ts")).updateHook],
  ["update.ready", async () => (await import("./update-ready.ts")).updateReady],
  ["update.sign", async () => (await import("./update-sign.ts")).updateSign],
  ["update.verdict", async () => (await import("./update-verdict.ts")).updateVerdict],
  ["update.window", async () => (await import("./update-window.ts")).updateWindow],
  ["wait", async () => (await import("./wait.ts")).waitAction],
]);

export const actionNames: readonly string[] = [...loaders.keys()];

/** The action of that name; undefined if there is none. */
export async function findAction(name: string): Promise<Action | undefined> {
  return loaders.get(name)?.();
}
