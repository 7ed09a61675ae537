import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { NodeView } from "#api/schemas.ts";
import type { LabNode } from "#lab/lab.ts";
import { contentsOf, contradictions, exchangesOf, on, outputOf, stepsThat, type Bastion } from "#support/deploy.ts";
import { deployedLab, type DeployedLab } from "#support/deployed-lab.ts";
import { differences } from "#support/installed-state.ts";

const profile = "/nix/var/nix/profiles/kcore";
const certs = "/etc/kcore/certs";
/** The path of a certificate and its key, without the endings. */
const pairOf = (name: "controller" | "node"): string =>
  name === "node" ? `${certs}/node` : "/etc/kcore/controller/controller";

/** deploy_node on two nodes that share one lab: each test leaves both deployed and in order. */
describe("deploy_node on real nodes", () => {
  let deployed: DeployedLab;
  let bastion: Bastion;
  let n1: LabNode;
  let n2: LabNode;
  let n4: LabNode;
  let b1: LabNode;

  before(async () => {
    deployed = await deployedLab();
    ({ bastion, n1, n2, n4, b1 } = deployed);
  });

  const nodes = async (): Promise<readonly NodeView[]> =>
    JSON.parse(await bastion.does("get", "nodes", "-o", "json")) as NodeView[];
  const statuses = async (): Promise<Readonly<Record<string, string>>> =>
    Object.fromEntries((await nodes()).map(({ hostname, status }) => [hostname, status]));

  it("deploys three bare nodes at once, though its terminal is closed meanwhile", async () => {
    expect(deployed.first.endedBefore).to.equal(0);
    expect(await statuses()).to.deep.equal({ n1: "ready", n2: "ready", n3: "ready" });
    const table = await bastion.does("get", "nodes");
    expect(table)
      .to.match(/n1 +Ready +approved +controller/)
      .and.match(/n2 +Ready +approved +worker/);
  });

  it("does what its dry run on the bare machines predicted", async () => {
    const { plan, run } = deployed.first;
    const done = await bastion.events(run);
    expect(contradictions(plan, done)).to.deep.equal([]);
    // The dry run predicts about half of the run's changes with certainty.
    const foreseen = stepsThat("would-change", plan).length;
    expect(foreseen, JSON.stringify(stepsThat("unknown", plan))).to.be.at.least(
      stepsThat("changed", done).length * 0.4,
    );
  });

  it("can be watched from another terminal, and its record is complete", async () => {
    const { attached, run: first } = deployed.first;
    expect(attached.code, outputOf(attached)).to.equal(0);
    const shown = await bastion.does("runs", "show", first, "--events");
    for (const text of [attached.stdout, shown]) {
      expect(text)
        .to.match(text === shown ? /n1 +machine +in order/ : /n1 +preflight +in order: 1 step/)
        .and.match(/n3 +agent's service +changed/);
      expect(text).to.match(/^3 nodes: 3 done and changed \(n1, n2, n3\)$/m);
      expect(text).to.include(`(run ${first})`);
    }
    expect(await bastion.does("runs", "list")).to.match(new RegExp(`${first} +done `));
  });

  it("dry run: shows the changes to a bare node, and makes none", async () => {
    const look = async (): Promise<readonly string[]> =>
      Promise.all([contentsOf(n4), ...n4.disks.map(({ image }) => sumOf(image))]);
    const before = await look();
    const dry = await bastion.deploy("n4", "--dry-run");
    expect(dry.code, outputOf(dry)).to.equal(0);
    const events = await bastion.events();
    expect(stepsThat("would-change", events, "n4")).to.include.members(["partition[n4-disk0]", "nix"]);
    expect(stepsThat("unknown", events, "n4")).to.include("node's certificate");
    expect(stepsThat("changed", events)).to.deep.equal([]);
    for (const [index, after] of (await look()).entries())
      expect(differences((before[index] ?? "").split("\n"), after.split("\n"))).to.deep.equal([]);
  });

  it("changes nothing in the second run, with two exchanges for each node", async () => {
    const second = await bastion.deploy("n1,n2,n3");
    expect(second.code, outputOf(second)).to.equal(0);
    expect(second.stdout).to.match(/^3 nodes: 3 done \(n1, n2, n3\)\nSteps: \d+ succeeded \(changed=0\), 0 failed/m);
    // In lines: 193 before steps in order were told once a stage and node.
    expect(second.stdout.trimEnd().split("\n").length, second.stdout).to.be.at.most(40);
    const events = await bastion.events();
    expect(stepsThat("changed", events)).to.deep.equal([]);
    expect(exchangesOf(events)).to.deep.equal({ n1: 2, n2: 2, n3: 2 });
  });

  it("dry run: reports 0 changes on deployed nodes", async () => {
    const dry = await bastion.deploy("n1,n2,n3", "--dry-run");
    expect(dry.code, outputOf(dry)).to.equal(0);
    const events = await bastion.events();
    for (const outcome of ["would-change", "unknown", "changed", "failed"])
      expect(stepsThat(outcome, events), outcome).to.deep.equal([]);
  });

  const drifts: readonly { what: string; node: string; make: string; mended: readonly string[]; look: string }[] = [
    {
      what: "an edited file, with the restart it asks for",
      node: "n1",
      make: "echo '# by hand' >>/etc/kcore/controller.yaml",
      mended: ["controller's configuration", "controller's service"],
      look: "! grep 'by hand' /etc/kcore/controller.yaml",
    },
    {
      what: "a daemon that runs from another store path than the profile's, as after a run that was cut off",
      node: "n2",
      make: [
        "mkdir -p /run/systemd/system/kcore-node-agent.service.d",
        "printf '[Service]\\nType=exec\\nExecStart=\\nExecStart=/bin/sleep infinity\\n' >/run/systemd/system/kcore-node-agent.service.d/old.conf",
        "systemctl daemon-reload && systemctl restart kcore-node-agent",
        "rm -r /run/systemd/system/kcore-node-agent.service.d && systemctl daemon-reload",
      ].join(" && "),
      mended: ["agent's service"],
      look: "readlink /proc/$(systemctl show -P MainPID kcore-node-agent)/exe | grep ^/nix/store/",
    },
    {
      what: "a stopped unit",
      node: "n2",
      make: "systemctl stop kcore-node-agent",
      mended: ["agent's service"],
      look: "systemctl is-active kcore-node-agent",
    },
    {
      what: "an unmounted disk",
      node: "n1",
      make: "umount /var/lib/kcore/volumes1",
      mended: ["mount[n1-disk1]"],
      look: "findmnt /var/lib/kcore/volumes1",
    },
  ];
  for (const { what, node, make, mended, look } of drifts)
    it(`corrects exactly ${what}`, async () => {
      const machine = node === "n1" ? n1 : n2;
      await on(machine, make);
      await bastion.deploy(node, "--dry-run");
      const plan = await bastion.events();
      const mending = await bastion.deploy(node);
      expect(mending.code, outputOf(mending)).to.equal(0);
      expect(contradictions(plan, await bastion.events())).to.deep.equal([]);
      expect(stepsThat("changed", await bastion.events(), node)).to.deep.equal(mended);
      await on(machine, look);
    });

  it("mounts the data disks, and keeps the controller's state off them", async () => {
    const mounts = await on(n1, "findmnt -rno TARGET,FSTYPE,OPTIONS,PARTLABEL | grep /var/lib/kcore");
    expect(mounts).to.match(/^\/var\/lib\/kcore\/volumes ext4 \S*noatime/m);
    expect(mounts).to.match(/^\/var\/lib\/kcore\/volumes1 ext4 /m);
    expect(await on(n1, `sgdisk -p ${n1.disks[0]?.byId}`)).to.match(/^ +1 .* 8300 +data$/m);
    expect(await on(n1, "cat /etc/fstab")).to.match(/nofail/);
    expect(await on(n1, "findmnt -no TARGET --target /var/lib/kcore/controller")).to.equal("/");
  });

  it("runs its two daemons enabled and hardened", async () => {
    const units = { n1: ["kcore-controller", "kcore-node-agent"], n2: ["kcore-node-agent"] };
    for (const machine of [n1, n2])
      for (const unit of units[machine.name as "n1" | "n2"]) {
        expect(await on(machine, `systemctl is-active ${unit}; systemctl is-enabled ${unit}`)).to.equal(
          "active\nenabled",
        );
        const exposure = await on(machine, `systemd-analyze security --no-pager ${unit} | tail -n 1`);
        expect(Number(/: ([\d.]+) /.exec(exposure)?.[1]), exposure).to.be.at.most(4.0);
      }
    expect(await on(n2, "systemctl list-unit-files 'kcore-controller*' --no-legend || :")).to.equal("");
    // The updater waits, and runs only when needed.
    expect(await on(n2, "systemctl is-active kcore-updater.path kcore-updater.service || :")).to.equal(
      "active\ninactive",
    );
    const updater = await on(n2, "systemd-analyze security --no-pager kcore-updater | tail -n 1");
    expect(Number(/: ([\d.]+) /.exec(updater)?.[1]), updater).to.be.at.most(6.0);
  });

  it("installs certificates that openssl verifies strictly, with the right owners and modes", async () => {
    for (const [machine, name] of [
      [n1, "controller"],
      [n1, "node"],
      [n2, "node"],
    ] as const) {
      expect(await on(machine, chainCheck(name))).to.match(/: OK$/m);
      const key = "openssl pkey -pubout -in KEY | sha256sum; openssl x509 -noout -pubkey -in CERT | sha256sum";
      const [ofKey, ofCert] = (
        await on(machine, key.replace("KEY", `${pairOf(name)}.key`).replace("CERT", `${pairOf(name)}.crt`))
      ).split("\n");
      expect(ofCert).to.equal(ofKey);
      expect(await on(machine, `openssl x509 -noout -ext subjectAltName -in ${pairOf(name)}.crt`))
        .to.include(`IP Address:${machine.address}`)
        .and.include(`/${name}/${machine.id}`);
    }
    expect(await on(n1, "cd /etc/kcore && stat -c '%n %a %U:%G' certs/* controller/*")).to.equal(
      [
        "certs/ca.crt 644 root:root",
        "certs/node.crt 644 root:root",
        "certs/node.key 600 root:root",
        "controller/controller.crt 644 kcore:kcore",
        "controller/controller.key 600 kcore:kcore",
        "controller/sub-ca.crt 644 kcore:kcore",
        "controller/sub-ca.key 600 kcore:kcore",
      ].join("\n"),
    );
    expect(await on(n1, "cd /etc/kcore && stat -c '%a %U:%G' . certs controller controller.yaml")).to.equal(
      "755 root:root\n755 root:root\n700 kcore:kcore\n640 root:kcore",
    );
    expect(await on(n1, "stat -c '%a %U' /var/lib/kcore/controller /var/lib/kcore/controller/*")).to.match(
      /^700 kcore(\n[67]00 kcore)+$/,
    );
  });

  it("keeps its runtime as a generation that starts from its store path alone", async () => {
    const generations = await on(n1, `nix-env -p ${profile} --list-generations`);
    expect(generations).to.match(/^\s*1 .*\(current\)$/);
    const path = await on(n1, `readlink -f ${profile}`);
    expect(path).to.match(/^\/nix\/store\/[a-z0-9]{32}-kcore/);
    expect(await on(n1, `nix-store --verify-path ${path} && nix-store -q --references ${path}`)).to.equal("");
    expect(await on(n1, "cat /etc/systemd/system/kcore-controller.service")).to.match(
      new RegExp(`^ExecStart=${profile}/bin/kcore-node controller serve `, "m"),
    );
    expect(await on(n1, "readlink /proc/$(systemctl show -P MainPID kcore-controller)/exe")).to.contain(`${path}/lib/`);
    const version = await on(
      n1,
      `set -e; root=$(mktemp -d); mkdir -p $root${path}; cp -a ${path}/. $root${path}/
       chroot $root $(echo ${path}/lib/ld-linux*) --library-path ${path}/lib ${path}/bin/node ${path}/app/kcore.mjs --version; rm -rf $root`,
    );
    expect(version).to.match(/^kcore \d+\.\d+\.\d+/);
  });

  it("exec, ping and facts work on Debian and BusyBox nodes", async () => {
    const uname = await bastion.does("exec", "--on", "role:worker", "--", "uname", "-a");
    expect(uname)
      .to.match(/n2 .*Linux n2/)
      .and.match(/b1 .*Linux b1/)
      .and.not.match(/Linux n1/);
    const ping = await bastion.does("ping", "--on", "*");
    for (const { name } of [n1, n2, b1]) expect(ping).to.match(new RegExp(`${name} +ok +\\d+`));
    for (const { name } of [n1, b1]) {
      const facts = JSON.parse(await bastion.does("facts", "--on", name, "-o", "json")) as Record<string, Facts>;
      expect(facts[name]?.hostname).to.equal(name);
      expect(facts[name]?.os.id).to.equal(name === "n1" ? "debian" : "busybox-lab");
      // The disks of the lab's own machine are not listed.
      const disks = facts[name]?.disks.map(({ serial }) => serial).toSorted();
      expect(disks).to.deep.equal(name === "n1" ? ["n1-disk0", "n1-disk1"] : []);
    }
  });

  it("completes a deployment that a power cut interrupted, and then finds the node in order", async () => {
    const deploy = ["orchestrate", "deploy_node", "n4", "--passphrase-file", "passphrase"];
    const { ended: run } = await bastion.begin(deploy);
    // Not while apt works: the operator has to mend an interrupted dpkg (F-20).
    await bastion.until(
      (events) => events.some((event) => event.type === "step.started" && event.title === "profile"),
      "the runtime's step",
    );
    await sleep(500);
    await bastion.killDriver();
    await n4.powerCut();
    await run;
    await n4.start();
    const resumed = await bastion.kcore(["runs", "resume", "last", "--passphrase-file", "passphrase"]);
    expect(resumed.code, outputOf(resumed)).to.equal(0);
    expect(await bastion.does("get", "nodes")).to.match(/n4 +Ready/);
    const second = await bastion.deploy("n4");
    expect(second.code, outputOf(second)).to.equal(0);
    const events = await bastion.events();
    expect(stepsThat("changed", events)).to.deep.equal([]);
    expect(exchangesOf(events)).to.deep.equal({ n4: 2 });
  });

  const chainCheck = (name: "controller" | "node"): string =>
    `openssl verify -x509_strict -CAfile ${certs}/ca.crt -untrusted ${pairOf(name)}.crt ${pairOf(name)}.crt`;
});

interface Facts {
  readonly hostname: string;
  readonly os: { readonly id: string };
  readonly disks: readonly { readonly serial: string }[];
}

async function sumOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
