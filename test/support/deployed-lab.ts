import type { RunEvent } from "#engine/events/event.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { openBastion, labRoster, type Bastion, type KcoreEnd } from "./deploy.ts";
import { ownLab } from "./own-lab.ts";
import { openTerminal } from "./terminal.ts";

/** The first deployment of the nodes, for the tests that examine it. */
interface FirstDeployment {
  /** The events of the dry run before it. */
  readonly plan: readonly RunEvent[];
  readonly run: string;
  /** The output of `kcore runs attach` in another terminal. */
  readonly attached: KcoreEnd;
  /** The number of nodes that had ended when the terminal was closed. */
  readonly endedBefore: number;
}

/** A controller n1 and workers n2 and n3, deployed; a bare n4; b1, a BusyBox machine. */
export interface DeployedLab {
  readonly lab: Lab;
  readonly bastion: Bastion;
  readonly n1: LabNode;
  readonly n2: LabNode;
  readonly n3: LabNode;
  readonly n4: LabNode;
  readonly b1: LabNode;
  readonly first: FirstDeployment;
}

let lab: Lab | undefined;
let deployed: Promise<DeployedLab> | undefined;

/** The lab that all test files about deploy_node share. The first call starts it. Each test leaves n1 to n3 in order. */
export function deployedLab(): Promise<DeployedLab> {
  return (deployed ??= deploy());
}

// A root hook, since hooks of a file do not run if `mocha -g` chooses none of its tests.
after(async () => {
  const { bastion } = (await deployed?.catch(() => undefined)) ?? {};
  await bastion?.remove();
  await lab?.down();
});

async function deploy(): Promise<DeployedLab> {
  lab = await ownLab();
  const [n1, n2, n3, n4, b1] = (await lab.up([
    { name: "n1", kind: "debian", disks: ["96M", "64M"] },
    { name: "n2", kind: "debian", disks: ["64M"] },
    { name: "n3", kind: "debian", disks: ["64M"] },
    { name: "n4", kind: "debian", disks: ["64M", "64M"] },
    { name: "b1", kind: "busybox", disks: [] },
  ])) as [LabNode, LabNode, LabNode, LabNode, LabNode];
  const bastion = await openBastion(
    { "roster/lab.yaml": await labRoster(lab, { n2: "user: ops" }) },
    { cluster: true },
  );
  try {
    return { lab, bastion, n1, n2, n3, n4, b1, first: await deployInTerminal(bastion) };
  } catch (error) {
    await bastion.remove();
    throw error;
  }
}

/** Plans, then deploys in a terminal that is closed once a node has its Nix step, while another process attaches to the run. */
async function deployInTerminal(bastion: Bastion): Promise<FirstDeployment> {
  await bastion.does("orchestrate", "deploy_node", "n1,n2,n3", "--passphrase-file", "passphrase", "--yes", "--dry-run");
  const plan = await bastion.events();
  const terminal = await openTerminal(bastion, "orchestrate deploy_node n1,n2,n3 --passphrase-file passphrase --yes");
  const isPlan = (event: RunEvent): boolean => event.type === "run.started" && event.dryRun;
  try {
    await bastion.until(
      (events) =>
        !events.some(isPlan) && events.some((event) => event.type === "step.started" && event.title === "nix"),
      "the Nix step of the first node",
    );
    const attached = bastion.kcore(["runs", "attach", "last"]);
    await bastion.until(
      (events) => events.some((event) => event.type === "step.finished" && event.title === "nix"),
      "the end of the Nix step of the first node",
    );
    await terminal.close();
    const endedBefore = (await bastion.events()).filter((event) => event.type === "node.finished").length;
    return { plan, run: (await bastion.runs()).at(-1) ?? "", attached: await attached, endedBefore };
  } finally {
    await terminal.close();
  }
}
