import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import type { LabNode } from "#lab/lab.ts";
import { exchangesOf, on, outputOf, stepsThat, type Bastion, type Ended } from "#support/deploy.ts";
import { deployedLab } from "#support/deployed-lab.ts";

const states = {
  "states/slow.yaml": `
steps:
  - id: before
    command.run: { cmd: "echo before >>/root/trace" }
  - id: slow
    command.run: { cmd: "echo begun >>/root/trace; until [ -e /root/go ]; do sleep 0.2; done; echo slept >>/root/trace" }
  - id: after
    command.run: { cmd: "echo after >>/root/trace" }
`,
  "states/owed.yaml": `
params: { text: { type: string, required: true }, seconds: { type: integer, default: 0 } }
steps:
  - id: configuration
    file.managed: { path: /etc/demo.conf, content: "{{params.text}}\\n" }
  - id: unit
    unit.managed: { name: kcore-demo, content: "[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n" }
  - id: pause
    command.run: { cmd: "sleep {{params.seconds}}" }
  - id: service
    service.running: { name: kcore-demo, verifyFor: 0s }
    restartOn: [configuration]
`,
};
const once = "before\nbegun\nslept\nafter";
const started = (title: string) => (events: readonly RunEvent[]) =>
  events.some((event) => event.type === "step.started" && event.title === title);

describe("a run on real nodes", function () {
  this.timeout(600_000);
  let bastion: Bastion;
  let n1: LabNode;
  let n2: LabNode;
  let n3: LabNode;
  let n4: LabNode;
  let b1: LabNode;

  before(async () => {
    ({ bastion, n1, n2, n3, n4, b1 } = await deployedLab());
    await bastion.write(states);
  });
  beforeEach(async () => {
    await Promise.all([n1, n2, n3, b1].map((node) => on(node, "rm -f /root/trace /root/go")));
  });

  const inSlowStep = (...nodes: readonly LabNode[]): Promise<unknown> =>
    Promise.all(nodes.map((node) => on(node, "until grep -qs begun /root/trace; do sleep 0.1; done")));
  const goOn = (...nodes: readonly LabNode[]): Promise<unknown> =>
    Promise.all(nodes.map((node) => on(node, "touch /root/go")));

  it("survives the death of its sshd sessions and a cut network during a step, which runs once", async () => {
    const { ended: run } = await bastion.begin(["state", "apply", "slow", "--on", "n1,n2,n3,b1"]);
    await inSlowStep(n1, n2, n3, b1);
    // Only a session's process, never the listener. Its title is “sshd: USER@…”; dropbear's sessions are children of the first process.
    await on(n1, "for p in $(pgrep -f '^sshd: root'); do [ $p = $PPID ] || kill -9 $p; done");
    await on(n2, "for p in $(pgrep -f '^sshd: ops'); do kill -9 $p; done");
    await on(
      b1,
      "for p in $(pidof dropbear); do [ $p = $PPID ] || [ $(cut -d' ' -f4 /proc/$p/stat) = 1 ] || kill -9 $p; done",
    );
    await n3.cut();
    const isLost = (events: readonly RunEvent[], { name }: LabNode): boolean =>
      events.some((event) => event.type === "node.disconnected" && event.node === name);
    await bastion.until((events) => [n1, n2, b1].every((node) => isLost(events, node)), "that the sessions are lost");
    await sleep(4_000);
    await n3.heal();
    await goOn(n1, n2, n3, b1);
    const ended = await run;
    expect(ended.code, outputOf(ended)).to.equal(0);
    for (const node of [n1, n2, n3, b1]) expect(await on(node, "cat /root/trace"), node.name).to.equal(once);
  });

  it("goes on by `runs resume` when its process was killed during a step, which runs once", async () => {
    const { ended: run } = await bastion.begin(["state", "apply", "slow", "--on", "n2,b1"]);
    await inSlowStep(n2, b1);
    await bastion.killDriver();
    const died = await run;
    expect(died.code, outputOf(died)).to.equal(1);
    expect(outputOf(died))
      .to.match(/RUN_DIED/)
      .and.match(/kcore runs resume \S+/);
    const [id = ""] = /\d{8}-\d{6}-[0-9a-f]{4}/.exec(outputOf(died)) ?? [];
    expect(await bastion.does("runs", "list")).to.match(new RegExp(`${id} +died`));
    await goOn(n2, b1);
    const resumed = await bastion.kcore(["runs", "resume", id]);
    expect(resumed.code, outputOf(resumed)).to.equal(0);
    for (const node of [n2, b1]) expect(await on(node, "cat /root/trace"), node.name).to.equal(once);
    const again = await bastion.kcore(["runs", "resume", id]);
    expect(again.code).to.equal(2);
    expect(outputOf(again)).to.match(/RUN_FINISHED/);
  });

  it("restarts in its next run what an earlier one, that died, owed", async () => {
    const words = (...more: string[]): string[] => ["state", "apply", "owed", "--on", "n3", "--set", ...more];
    const apply = (...more: string[]): Promise<Ended> => bastion.kcore(words(...more));
    const pid = (): Promise<string> => on(n3, "systemctl show -p MainPID --value kcore-demo");
    await apply("text=one");
    const first = await pid();
    const { ended: run } = await bastion.begin(words("text=two", "--set", "seconds=600"));
    await bastion.until(started("pause"), "the pause");
    await bastion.killDriver();
    expect((await run).code).to.equal(1);
    expect(await pid()).to.equal(first);
    // The node's processes die too: otherwise the runner waits for a resume, and holds the lock.
    await on(
      n3,
      "for l in /var/lib/kcore/lock/*; do l=$(readlink $l); kill -9 ${l%%:*} 2>/dev/null; done; pkill -fx 'sleep 600'; sleep 2.5",
    );
    const dry = await apply("text=two", "--dry-run");
    expect(dry.stdout, outputOf(dry)).to.match(/service +would change/);
    expect(await pid()).to.equal(first);
    const next = await apply("text=two");
    expect(next.code, outputOf(next)).to.equal(0);
    expect(stepsThat("changed", await bastion.events()))
      .to.include("n3 service")
      .and.not.include("n3 configuration");
    expect(await pid()).to.not.equal(first);
    await on(n3, "systemctl disable --now kcore-demo; rm /etc/systemd/system/kcore-demo.service /etc/demo.conf");
  });

  it("takes a node to Ready whose power was cut in the middle of deploy_node, and then finds it in order", async () => {
    const deploy = ["orchestrate", "deploy_node", "n4", "--passphrase-file", "passphrase"];
    // If deploy-node.ts ran here before, the disk has contents.
    const [, grant] = /--grant (n4-disk1:\S+)/.exec((await bastion.kcore([...deploy, "--dry-run"])).stdout) ?? [];
    const words = grant === undefined ? deploy : [...deploy, "--grant", grant];
    const { ended: run } = await bastion.begin(words);
    // Not while apt works: the operator has to mend an interrupted dpkg (F-20).
    await bastion.until(started("profile"), "the runtime's step");
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
});
