import { join } from "node:path";
import { expect } from "chai";
import { parse, stringify } from "yaml";
import type { RunEvent } from "#engine/events/event.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { on, openBastion, outputOf, type Bastion } from "#support/deploy.ts";
import { stepsNotInOrder } from "#support/examples.ts";
import { ownLab } from "#support/own-lab.ts";

const names = ["n1", "n2", "n3"];
const pki = "/etc/etcd/pki";
const etcdctl = `ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=${pki}/ca.crt --cert=${pki}/member.crt --key=${pki}/member.key`;

describe("the pack etcd, with Debian's etcd", function () {
  this.timeout(600_000);
  let lab: Lab;
  let bastion: Bastion;
  let nodes: readonly LabNode[];

  before(async () => {
    lab = await ownLab({ packages: ["curl", "etcd-client", "etcd-server"] });
    nodes = await lab.up(names.map((name) => ({ name, kind: "debian", disks: [] })));
    bastion = await openBastion({}, { cluster: true });
    await bastion.does("pack", "add", join(import.meta.dirname, "../../packs/etcd"));
    await keepRoster(names);
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const node = (name: string): LabNode => nodes[names.indexOf(name)] as LabNode;
  const words = (what: string, more: readonly string[]): readonly string[] =>
    `orchestrate etcd/${what} ${more.join(" ")} --passphrase-file passphrase --output plain`.split(/ +/);
  const run = (what: string, ...more: readonly string[]): Promise<string> => bastion.does(...words(what, more));
  /** The output of a run that fails. */
  async function fails(what: string, ...more: readonly string[]): Promise<string> {
    const end = await bastion.kcore(words(what, more));
    expect(end.code, outputOf(end)).to.equal(1);
    return outputOf(end);
  }
  /** Runs it twice: the second run changes nothing. */
  async function runTwice(what: string, ...more: readonly string[]): Promise<void> {
    await run(what, ...more);
    await run(what, ...more);
    expect(stepsNotInOrder(await bastion.events()), `${what} ${more.join(" ")}`).to.deep.equal([]);
  }
  /** The members that a member lists: name, and whether it is a learner. */
  async function members(name = "n1"): Promise<readonly string[]> {
    const lines = (await on(node(name), `${etcdctl} member list`)).split("\n").map((line) => line.split(", "));
    return lines.map(([, status, member, , , learner]) => `${member} ${status} ${learner}`).toSorted();
  }
  const votes = (...who: readonly string[]): readonly string[] => who.map((name) => `${name} started false`);

  /** Kills the run of this command after a step of n3, and lets the next run have the node. */
  async function killAt(step: string, command: readonly string[]): Promise<void> {
    const { ended } = await bastion.begin(command);
    const isOver = (event: RunEvent): boolean => event.type === "step.finished" && event.title === step;
    await bastion.until((events) => events.some(isOver), `the step ${step}`);
    await bastion.killDriver();
    await ended;
    await bastion.does("node", "unlock", "n3", "--yes");
  }

  /** The roster has these members. */
  async function keepRoster(those: readonly string[]): Promise<void> {
    const there = parse(await lab.roster()) as { readonly nodes: Readonly<Record<string, object>> };
    const entries = those.map((name) => [
      name,
      { ...there.nodes[name], roles: [name === "n1" ? "controller" : "worker", "etcd"] },
    ]);
    await bastion.write({ "roster/lab.yaml": stringify({ ...there, nodes: Object.fromEntries(entries) as object }) });
  }

  it("founds no cluster unless told to, and forms one a member at a time", async () => {
    expect(await bastion.does("state", "apply", "etcd/left", "--on", "n3", "--output", "plain")).to.contain(
      "changed=0",
    );
    expect(await fails("cluster", "--on", "n1,n2")).to.contain("--set found=true");
    await runTwice("cluster", "--on", "n1,n2", "--set", "found=true");
    expect(await members()).to.deep.equal(votes("n1", "n2"));
    await on(node("n1"), `${etcdctl} put colour blue`);
  });

  it("adds a member with a run that is killed after its announcement, and after its start", async () => {
    for (const step of ["joined", "etcd"]) await killAt(step, words("cluster", ["n3"]));
    await runTwice("cluster");
    expect(await members("n3")).to.deep.equal(votes("n1", "n2", "n3"));
    expect(await run("verify")).to.contain("changed=0");
  });

  it("leaves with remove_node by the hook leave, killed in three stages and taken up again", async () => {
    const deployed = await bastion.deploy("n1,n3");
    expect(deployed.code, outputOf(deployed)).to.equal(0);
    await bastion.write({ "kcore.yaml": "drain: { leave: { state: etcd/left } }\n" });
    const removal = ["orchestrate", "remove_node", "n3", "--yes", "--output", "plain"];
    for (const step of ["left[n3]", "keys", "stop[kcore-node-agent]"]) {
      await killAt(step, removal);
      expect(await members(), `killed after ${step}`).to.deep.equal(votes("n1", "n2"));
    }
    expect(await bastion.does("runs", "resume", "last")).to.contain("on n3 stay");
    expect(await bastion.does(...removal)).to.contain("changed=0");
    expect(await on(node("n3"), "ls -d /etc/etcd/pki /var/lib/etcd-kcore /etc/kcore 2>/dev/null || :")).to.equal("");
    expect(await members()).to.deep.equal(votes("n1", "n2"));
    expect(await fails("verify", "--on", "n1")).to.contain("n3");
    await run("cluster");
  });

  it("forgets a member whose machine is gone", async () => {
    await on(node("n3"), "systemctl stop etcd");
    await runTwice("remove", "n3", "--set", "via=n1");
    expect(await members()).to.deep.equal(votes("n1", "n2"));
  });

  it("restores a snapshot into an emptied cluster alone", async () => {
    await runTwice("snapshot", "--set", "name=before");
    await on(node("n1"), `${etcdctl} put colour red`);
    const restore = ["n1", "--set", "file=/var/backups/etcd/before.db"];
    expect(await fails("restore", ...restore)).to.contain("emptied cluster");
    await keepRoster(["n1", "n2"]);
    await bastion.does("state", "apply", "etcd/absent", "--on", "*", "--output", "plain");
    await runTwice("restore", ...restore);
    await runTwice("cluster");
    expect(await members("n2")).to.deep.equal(votes("n1", "n2"));
    expect(await on(node("n2"), `${etcdctl} get colour --print-value-only`)).to.equal("blue");
    expect(await run("verify")).to.contain("changed=0");
  });
});
