import { expect } from "chai";
import type { Outcome, RunEvent } from "#engine/events/event.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { contradictions, openBastion, labRoster, type Bastion } from "#support/deploy.ts";
import { ownLab } from "#support/own-lab.ts";

/** Steps that depend on each other, with their outcomes in a dry run and in a run. */
interface Pair {
  readonly title: string;
  /** A shell text that prepares the node. */
  readonly before?: string;
  /** The list of steps, in YAML. */
  readonly steps: string;
  readonly foreseen: readonly Outcome[];
  readonly done: readonly Outcome[];
}

const [ok, would, changed, unknown, failed] = ["ok", "would-change", "changed", "unknown", "failed"] as const;
const disk = "{ serial: d1-disk0 }";

const pairs: readonly Pair[] = [
  {
    title: "a folder for another user, then root's file in it",
    steps: `
  - { id: folder, directory.managed: { path: /srv/theirs, owner: www-data } }
  - { id: file, file.managed: { path: /srv/theirs/f, content: x } }`,
    foreseen: [would, unknown],
    done: [changed, failed],
  },
  {
    title: "a folder of another user's, which root gets, then root's file in it",
    before: "mkdir -p /srv/got && chown www-data /srv/got",
    steps: `
  - { id: folder, directory.managed: { path: /srv/got, owner: root } }
  - { id: file, file.managed: { path: /srv/got/f, content: x } }`,
    foreseen: [would, unknown],
    done: [changed, changed],
  },
  {
    title: "a folder whose mode changes, over a file in order",
    before: "mkdir -p /srv/kept && chmod 700 /srv/kept && printf x >/srv/kept/f",
    steps: `
  - { id: folder, directory.managed: { path: /srv/kept, mode: "0755" } }
  - { id: file, file.managed: { path: /srv/kept/f, content: x } }`,
    foreseen: [would, ok],
    done: [changed, ok],
  },
  {
    title: "a package whose lists are to be fetched",
    before: "apt-get -q -y purge tree; rm -rf /var/lib/apt/lists/*",
    steps: `
  - { id: package, package.installed: { name: tree, updateCache: true } }`,
    foreseen: [would],
    done: [changed],
  },
  {
    title: "a package without lists that nothing fetches",
    before: "apt-get -q -y purge tree; rm -rf /var/lib/apt/lists/*",
    steps: `
  - { id: package, package.installed: { name: tree } }`,
    foreseen: [failed],
    done: [failed],
  },
  {
    title: "two packages of which one needs the other",
    before: "apt-get -q -y purge xfsprogs libinih1; apt-get -q update",
    steps: `
  - { id: first, package.installed: { name: xfsprogs } }
  - { id: second, package.installed: { name: libinih1 } }
  - { id: third, package.installed: { name: bash } }`,
    foreseen: [would, would, ok],
    done: [changed, ok, ok],
  },
  {
    title: "a user, then a timer in the user's name; one of a user that nobody makes",
    before: "userdel -r demo; groupdel demo; true",
    steps: `
  - { id: user, user.managed: { name: demo } }
  - { id: timer, timer.managed: { name: demo, command: "true", onCalendar: daily, user: demo } }
  - { id: other, timer.managed: { name: other, command: "true", onCalendar: daily, user: nobody-here } }`,
    foreseen: [would, would, failed],
    done: [changed, changed, failed],
  },
  {
    title: "a unit, then its service",
    before: "rm -f /etc/systemd/system/pair.service; systemctl daemon-reload",
    steps: `
  - { id: unit, unit.managed: { name: pair, content: "[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n" } }
  - { id: service, service.running: { name: pair } }`,
    foreseen: [would, unknown],
    done: [changed, changed],
  },
  {
    title: "a service that a package starts, and that shall not run",
    before: "apt-get -q -y purge chrony; apt-get -q update",
    steps: `
  - { id: package, package.installed: { name: chrony } }
  - { id: service, service.stopped: { name: chrony } }`,
    foreseen: [would, unknown],
    done: [changed, changed],
  },
  {
    title: "a file, then the restart of its service",
    before:
      "printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/watch.service; systemctl daemon-reload; systemctl enable --now watch",
    steps: `
  - { id: file, file.managed: { path: /srv/watched, content: x } }
  - { id: service, service.running: { name: watch }, restartOn: [file] }
  - { id: other, service.running: { name: watch }, restartOn: [file], onChanges: [file] }`,
    foreseen: [would, would, unknown],
    done: [changed, changed, changed],
  },
  {
    title: "a command that makes a file, then what looks for it by a shell text",
    before: "rm -rf /srv/made",
    steps: `
  - { id: command, command.run: { cmd: "echo >/srv/made" }, creates: /srv/made }
  - { id: text, command.run: { cmd: "echo" }, unless: "test -e /srv/made" }
  - { id: file, file.managed: { path: /srv/made, content: "\\n" } }
  - { id: apart, file.managed: { path: /srv/apart, content: x } }`,
    foreseen: [would, unknown, unknown, would],
    done: [changed, ok, ok, changed],
  },
  {
    title: "a partition, a filesystem on it, a mount, and a file there",
    steps: `
  - { id: table, disk.partitioned: { disk: ${disk}, partitions: [{ name: data }] } }
  - { id: filesystem, filesystem.formatted: { disk: ${disk}, partition: data } }
  - { id: mount, mount.mounted: { path: /srv/disk, source: { disk: ${disk}, partition: data }, fstype: ext4 } }
  - { id: file, file.managed: { path: /srv/disk/f, content: x } }`,
    foreseen: [would, unknown, unknown, unknown],
    done: [changed, changed, changed, changed],
  },
];

/** Compares the outcomes of a dry run and the run after it; deployed/deploy-node.ts does so for deploy_node. */
describe("a dry run and the run after it", () => {
  let lab: Lab;
  let bastion: Bastion;
  let d1: LabNode;

  before(async () => {
    lab = await ownLab();
    [d1] = (await lab.up([{ name: "d1", kind: "debian", disks: ["64M"] }])) as [LabNode];
    bastion = await openBastion({ "roster/lab.yaml": await labRoster(lab) });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const outcomesOf = (events: readonly RunEvent[]): readonly Outcome[] =>
    events.flatMap((event) => (event.type === "step.finished" ? [event.outcome] : []));

  for (const [number, { title, before: prepare, steps, foreseen, done }] of pairs.entries())
    it(`agree: ${title}`, async () => {
      await d1.exec(prepare ?? ":");
      const state = `pair${number}`;
      await bastion.write({ [`states/${state}.yaml`]: `steps:${steps}\n` });
      const words = ["state", "apply", state, "--on", "d1"];
      await bastion.kcore([...words, "--dry-run"]);
      const plan = await bastion.events();
      await bastion.kcore(words);
      const run = await bastion.events();
      expect(outcomesOf(plan), "foreseen").to.deep.equal(foreseen);
      expect(outcomesOf(run), "done").to.deep.equal(done);
      expect(contradictions(plan, run)).to.deep.equal([]);
    });
});
