import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RunEvent } from "#engine/events/event.ts";
import type { LabNode } from "#lab/lab.ts";
import { openBastion, rosterOf, type Bastion } from "#support/deploy.ts";
import { ownLab, type OwnLab } from "#support/own-lab.ts";

const size = 40_000_000;
const state = `
steps:
  - { id: image, file.managed: { path: /srv/image, makeDirs: true, source: files/image } }
`;

type Sent = Extract<RunEvent, { type: "node.sent" }>;

describe("nodes that feed one another", function () {
  this.timeout(600_000);
  let lab: OwnLab;
  let nodes: readonly LabNode[];
  let bastion: Bastion;
  before(async () => {
    lab = await ownLab();
    const kinds = ["debian", "debian", "debian", "busybox"] as const;
    nodes = await lab.up(kinds.map((kind, index) => ({ name: `n${index + 1}`, kind, disks: [] })));
    // n3 needs sudo; n4 has Dropbear and no ssh client.
    const roster = await rosterOf(lab, { n3: "user: ops" });
    bastion = await openBastion({ "roster/lab.yaml": roster, "states/image.yaml": state });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });
  beforeEach(async () => {
    const file = join(bastion.project, "files/image");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, randomBytes(size));
  });

  /** Bytes that this machine has sent to the nodes' network. */
  const given = (): number => Number(readFileSync(`/sys/class/net/${lab.where.bridge}/statistics/tx_bytes`, "utf8"));
  const sent = async (): Promise<readonly Sent[]> =>
    (await bastion.events()).filter((event) => event.type === "node.sent");
  /** Remains of the feed on the nodes. */
  const remains = async (): Promise<string> => {
    const said = await Promise.all(
      nodes.map((node) =>
        node.exec(
          "cat ~root/.ssh/authorized_keys ~ops/.ssh/authorized_keys | grep -c kcore-feed; ls -d /var/lib/kcore/runs/feed-*; ls ~root/.ssh; :",
        ),
      ),
    );
    return said.map(({ stdout }) => stdout.replaceAll("\n", " ").trim()).join("; ");
  };
  const apply = (on: string, ...more: readonly string[]) =>
    bastion.kcore(["state", "apply", "image", "--on", on, "--yes", ...more]);

  it("need the bastion once, and leave nothing", async () => {
    const before = await remains();
    const dry = await apply("n1,n2,n3", "--feed", "nodes", "--dry-run");
    expect([dry.code, await sent(), await remains()]).to.deep.equal([0, [], before]);
    const base = given();
    const { code, stdout, stderr } = await apply("n1,n2,n3", "--feed", "nodes", "--verbose");
    expect([code, stderr]).to.deep.equal([0, ""], stdout);
    const moved = (given() - base) / size;
    const all = await sent();
    // The login of n3 cannot read the programs' kept contents, so that n3 is no source.
    const alone = all.filter(({ from }) => from === undefined).map(({ node }) => node);
    expect(all.map(({ node }) => node).toSorted()).to.deep.equal(["n1", "n2", "n3"]);
    expect(alone.length).to.equal(alone.includes("n3") ? 2 : 1);
    expect(moved).to.be.within(alone.length, alone.length + 0.2);
    expect(stdout).to.match(/sent files\/image from n[12] /);
    expect(await remains()).to.equal(before);
    const again = await apply("n1,n2,n3", "--feed", "nodes", "-o", "json");
    expect(again.code).to.equal(0);
    expect(await sent()).to.deep.equal([]);
  });

  it("get it from the bastion where Dropbear lets nobody in, and where there is no ssh client", async () => {
    const { code, stdout, stderr } = await apply("n1,n4", "--feed", "nodes");
    expect(code).to.equal(0, stdout + stderr);
    expect((await sent()).map(({ node, from = "bastion" }) => `${node} ${from}`)).to.have.members([
      "n1 bastion",
      "n4 bastion",
    ]);
    const warned = (await bastion.events()).flatMap((event) => (event.type === "warning" ? [event.text] : []));
    expect(warned.join()).to.match(
      /^the bastion sends it files\/image, which it could not get from (n1: it has no ssh client|n4: after 0 bytes: .*Permission denied \(publickey\)\.)$/,
    );
  });

  it("go on when the one that feeds them loses its power", async () => {
    const before = await remains();
    const begun = await bastion.begin(["state", "apply", "image", "--on", "n1,n2", "--yes", "--feed", "nodes"]);
    const events = await bastion.until((all) => all.some(({ type }) => type === "node.sent"), "a node that has it");
    const first = (events.find(({ type }) => type === "node.sent") as Sent).node;
    const source = nodes.find(({ name }) => name === first);
    await source?.powerCut();
    await begun.ended;
    const other = first === "n1" ? "n2" : "n1";
    const ends = (await bastion.events()).flatMap((event) =>
      event.type === "node.finished" && event.node === other ? [event.outcome] : [],
    );
    expect(ends).to.deep.equal(["done"]);
    await source?.start();
    expect((await apply("n1,n2")).code).to.equal(0);
    expect(await remains()).to.equal(before);
  });
});
