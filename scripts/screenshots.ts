import { mkdir } from "node:fs/promises";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunEvent } from "#engine/events/event.ts";
import { openLab } from "#lab/lab.ts";
import { openFile, startBrowser } from "#support/browser.ts";
import { kcoreProgram, openBastion, labRoster, type Bastion } from "#support/deploy.ts";
import { screenPage } from "#support/painted-screen.ts";
import { openShell, type ShellTerminal } from "#support/terminal.ts";

/**
 * `npm run screenshots`: makes the pictures of README and docs anew from real runs. Three real
 * nodes are deployed in a terminal (tmux); a roll-out asks and fails on one of them; `kcore web` shows it meanwhile, and
 * the fleet; the reports are opened in a browser.
 */
const run = promisify(execFile);
const pictures = join(import.meta.dirname, "../docs/pictures");
const [columns, rows] = [108, 28];

const project = {
  "states/web.yaml": `description: The web server of a node
steps:
  - id: site
    file.managed:
      path: /etc/kcore-web/site.conf
      content: |
        listen 80
        root /srv/www
        workers 8
      makeDirs: true
  - id: warm the cache
    command.run:
      cmd: |
        for page in index about prices contact; do echo "warming $page"; sleep 0.7; done
        if [ "$(cat /proc/sys/kernel/hostname)" = n3 ]; then sleep 9; fi
        if [ "$(cat /proc/sys/kernel/hostname)" = n2 ]; then echo "warm: /srv/www/prices: no space left on device" >&2; exit 28; fi
  - id: banner
    file.managed: { path: /etc/issue.net, content: "web\\n" }
`,
  "orchestrate/roll_out.yaml": `description: The web server, everywhere, after somebody agreed
params:
  nodes: { type: target, required: true }
stages:
  - { id: look, on: "{{params.nodes}}", apply: [preflight] }
  - { id: agree, run: confirm, message: "Roll the new web server out to 3 nodes?" }
  - { id: web, on: "{{params.nodes}}", apply: [web] }
`,
};

await mkdir(pictures, { recursive: true });
const lab = await openLab({ name: "shots" });
const browser = await startBrowser();
let bastion: Bastion | undefined;
try {
  await lab.down();
  await lab.up(["n1", "n2", "n3"].map((name) => ({ name, kind: "debian" as const, disks: ["64M"] })));
  bastion = await openBastion({ ...project, "roster/lab.yaml": await labRoster(lab) }, { cluster: true });
  await commit(bastion);
  await deploy(bastion);
  await rollOut(bastion);
  await reports(bastion);
} finally {
  await browser.close();
  await bastion?.remove();
  await lab.down();
}

/** deploy_node on three nodes: a recording of all of it, and a picture on the way. */
async function deploy(at: Bastion): Promise<void> {
  const terminal = await openAt(at);
  const words = "kcore orchestrate deploy_node n1,n2,n3 --passphrase-file passphrase --yes --report deploy.html";
  const recorder = [process.execPath, join(import.meta.dirname, "record-pane.ts"), join(pictures, "deploy.cast")];
  try {
    await terminal.record([...recorder, columns, rows, "'kcore deploys three bare machines'"].join(" "));
    await terminal.enter(words);
    await at.until((events) => hasStarted(events, "n3", "profile"), "the runtime's step on n3", 300_000);
    await sleep(1_200);
    await shoot(terminal, "deploy.png", words);
    await at.until(hasFinished, "the end of deploy_node", 300_000);
    await terminal.shows(/^\$ *$/m);
  } finally {
    await terminal.close();
  }
}

/** A roll-out that asks first, and that fails on one node while another is still at work. */
async function rollOut(at: Bastion): Promise<void> {
  const terminal = await openAt(at);
  const words = "kcore orchestrate roll_out n1,n2,n3 --report roll-out.html";
  try {
    await terminal.enter(words);
    await at.until((events) => events.some(({ type }) => type === "question.asked"), "the question", 60_000);
    await sleep(700);
    await shoot(terminal, "confirm.png", words);
    await terminal.press("y");
    await at.until(
      (events) => events.some((event) => event.type === "step.finished" && event.outcome === "failed"),
      "the failure",
      60_000,
    );
    await terminal.press("g");
    await sleep(300);
    await terminal.press("Enter");
    await sleep(700);
    await shoot(terminal, "failed.png", words);
    await inBrowser(at);
    await at.until(hasFinished, "the end of the roll-out", 60_000);
    // The run failed, so the view stays until a key is pressed.
    await terminal.press("q");
    await terminal.shows(/^\$ *$/m);
  } finally {
    await terminal.close();
  }
}

/** `kcore web`: the run that goes on, and the fleet. */
async function inBrowser({ project: cwd, home }: Bastion): Promise<void> {
  const env = { ...process.env, KCORE_HOME: home };
  const web = spawn(kcoreProgram, ["web", "--port", "0", "-o", "json"], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(web, "close");
  const page = await browser.newPage({ colorScheme: "light", viewport: { width: 1200, height: 860 } });
  try {
    const [text] = (await once(web.stdout, "data")) as [Buffer];
    await page.goto((JSON.parse(text.toString()) as { readonly url: string }).url);
    await page.getByRole("link", { name: "orchestrate roll_out" }).first().click();
    await page.locator("#link", { hasText: "live" }).waitFor();
    await page.screenshot({ path: join(pictures, "web-run.png"), fullPage: true });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.getByRole("link", { name: "Fleet" }).click();
    await page.getByText("n3").first().waitFor();
    await page.screenshot({ path: join(pictures, "web-fleet.png") });
  } finally {
    await page.close();
    web.kill("SIGINT");
    await ended;
  }
}

/** Both runs' reports, on a desk and on a phone. */
async function reports({ project: folder }: Bastion): Promise<void> {
  const views = [
    ["roll-out.html", "report.png", { colorScheme: "light", viewport: { width: 1200, height: 1000 } }],
    ["roll-out.html", "report-phone.png", { colorScheme: "dark", viewport: { width: 375, height: 800 } }],
    ["deploy.html", "report-timeline.png", { colorScheme: "dark", viewport: { width: 1200, height: 1000 } }],
  ] as const;
  for (const [file, name, options] of views) {
    const { page } = await openFile(browser, join(folder, file), options);
    if (name === "report-timeline.png") {
      await page.locator("details[data-name=n2] > summary").click();
      await page.evaluate("document.getElementById('timeline').scrollIntoView(), scrollBy(0, 110)");
    }
    await page.screenshot({ path: join(pictures, name) });
    await page.close();
  }
}

/** Commits the project, because the views show its revision. */
async function commit(at: Bastion): Promise<void> {
  await at.write({ ".gitignore": "/home/\n/passphrase\n*.html\n" });
  const who = ["-c", "user.name=operator", "-c", "user.email=operator@bastion"];
  for (const words of [
    ["init", "-q"],
    ["add", "."],
    [...who, "commit", "-q", "-m", "a new web server"],
  ])
    await run("git", words, { cwd: at.project });
}

function openAt({ project: cwd, home }: Bastion): Promise<ShellTerminal> {
  const path = `${join(kcoreProgram, "..")}:${process.env["PATH"] ?? ""}`;
  return openShell({ cwd, columns, rows }, { KCORE_HOME: home, PATH: path, TERM: "xterm-256color" });
}

async function shoot(terminal: ShellTerminal, name: string, title: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  await page.setContent(screenPage(await terminal.painted(), { columns, title }));
  await page.locator("figure").screenshot({ path: join(pictures, name) });
  await page.close();
}

function hasStarted(events: readonly RunEvent[], node: string, title: string): boolean {
  return events.some((event) => event.type === "step.started" && event.node === node && event.title === title);
}

function hasFinished(events: readonly RunEvent[]): boolean {
  return events.some(({ type }) => type === "run.finished");
}
