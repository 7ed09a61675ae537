import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { findLabPlace } from "#lab/place.ts";
import { debianImage } from "#system/debian-image.ts";
import { on, openBastion, stepsThat, type Bastion } from "#support/deploy.ts";
import { installPage, GuideFollower } from "#support/follow-guide.ts";
import { readGuides } from "#support/transcripts.ts";
import { isLong } from "#support/long-lab.ts";

const name = "three";
const names = ["a", "b", "c"] as const;
/** The page's disks, with the names that the lab's machines have for them. */
const disks = { "/dev/sda": "/dev/vdb", "/dev/sdb": "/dev/vdc" };
const guide = readGuides(installPage).find(({ needs }) => needs === "blank");

describe("three machines without an operating system (docs/cluster-install.md)", function () {
  this.timeout(1_800_000);
  let lab: Lab;
  let bastion: Bastion;
  let machines: readonly LabNode[] = [];
  let page: GuideFollower;
  let more: readonly string[];

  before(async function () {
    if (!isLong) return this.skip();
    lab = await openLab({ name });
    await lab.down();
    // One after the other, since two processors emulate all machines.
    for (const one of names)
      machines = [...machines, ...(await lab.up([{ name: one, kind: "vm", disks: ["4G", "300M"], live: true }]))];
    const wanted = { suite: "bookworm", mirror: "", kernel: "linux-image-cloud-amd64", packages: [] };
    const cache = join((await findLabPlace({ name })).home, "system");
    const image = await debianImage(wanted, { cache, note: () => {}, signal: new AbortController().signal });
    // A smaller kernel than the usual one; no time server exists here.
    more = ["--set", `os_image=${image.file}`, "--set", "time_sync=false"];
    bastion = await openBastion({
      "roster/nodes.yaml": `defaults: { identityFile: ${machines[0]?.identityFile ?? ""} }\nnodes: {}\n`,
    });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    page = new GuideFollower(bastion, machines, disks);
  });
  after(async () => {
    if (!isLong) return;
    await bastion?.remove();
    await (await openLab({ name })).down();
  });

  /** The bytes that this machine has sent to the lab's machines. */
  const sent = async (): Promise<number> => {
    const { bridge } = await findLabPlace({ name });
    return Number(await readFile(`/sys/class/net/${bridge}/statistics/tx_bytes`, "utf8"));
  };
  const tell = (text: string): void => console.log(`      ${text}`);

  for (const step of guide?.steps ?? [])
    it(`are installed as the page shows: kcore ${step.command.split(" ").slice(1, 3).join(" ")} (line ${step.line})`, async () => {
      const isInstall = step.command.startsWith("kcore node install");
      const [before, began, runs] = [await sent(), Date.now(), (await bastion.runs()).length];
      const ended = page.follow(step, isInstall ? more : []);
      if (isInstall) {
        const begins = async (): Promise<void> => {
          while ((await bastion.runs()).length === runs || (await bastion.events()).length === 0) await sleep(100);
        };
        await Promise.race([ended, begins()]);
        const watched = await bastion.kcore(["runs", "attach", "last"], { timeout: 1_200_000 });
        expect(watched.code, watched.stdout + watched.stderr).to.equal(0);
      }
      await ended;
      if (!isInstall) return;
      const mb = ((await sent()) - before) / 1e6;
      tell(`${Math.round((Date.now() - began) / 1000)} s, ${Math.round(mb)} MB: ${stagesOf(await bastion.events())}`);
    });

  it("run from their own disks afterwards", async () => {
    for (const machine of machines) {
      const rows = (await on(machine, "lsblk -nro SERIAL,NAME,LABEL,MOUNTPOINT")).split("\n");
      const disk = rows.find((row) => row.startsWith(`${machine.name}-disk0 `))?.split(" ")[1] ?? "";
      expect(rows).to.include(` ${disk}3 kcore-system /`);
      expect(await on(machine, "hostname; systemctl is-system-running --wait")).to.equal(`${machine.name}\nrunning`);
    }
  });

  it("are ready again after a power cut of all three", async () => {
    await Promise.all(machines.map((machine) => machine.powerCut()));
    await Promise.all(machines.map((machine) => machine.start()));
    for (const step of (guide?.steps ?? []).slice(-2)) await page.follow(step);
  });

  it("are updated once about members that joined after them, and then in order", async () => {
    const again = async (): Promise<readonly (readonly string[])[]> => {
      const all: (readonly string[])[] = [];
      for (const step of (guide?.steps ?? []).filter(({ command }) => command.startsWith("kcore node install"))) {
        await page.follow(step, more);
        all.push(stepsThat("changed", await bastion.events()));
      }
      return all;
    };
    const told = ["controller", "agent"].flatMap((one) => [`${one}'s configuration`, `${one}'s service`]);
    const late = await again();
    expect(late[0]).to.deep.equal(told.map((title) => `a ${title}`));
    expect(late[2]).to.deep.equal([]);
    expect(await again()).to.deep.equal([[], [], []]);
  });
});

/** Seconds between the starts of the operating system's steps and of the stages behind them. */
function stagesOf(events: readonly RunEvent[]): string {
  const marks = events.flatMap((event) =>
    event.type === "stage.started"
      ? [{ name: event.stage, at: event.at }]
      : event.type === "step.started" && event.stage === "system"
        ? [{ name: `system/${event.title}`, at: event.at }]
        : event.type === "run.finished"
          ? [{ name: "end", at: event.at }]
          : [],
  );
  return marks
    .slice(0, -1)
    .map(({ name: mark, at }, index) => `${mark} ${(((marks[index + 1]?.at ?? at) - at) / 1000).toFixed(0)}`)
    .join(", ");
}
