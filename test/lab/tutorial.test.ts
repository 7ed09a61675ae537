import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { openLab } from "#lab/lab.ts";
import { root } from "#support/pages.ts";
import { openShell, type ShellTerminal } from "#support/terminal.ts";
import { PageTypist, readTypedBlocks } from "#support/type-page.ts";

const page = "docs/tutorial.md";
/** The lab's name on the page. */
const labName = "tutorial";

describe(`${page}, typed into a shell`, function () {
  this.timeout(1_200_000);
  let folder: string;
  let terminal: ShellTerminal;
  let typist: PageTypist;

  before(async () => {
    await (await openLab({ name: labName })).down();
    folder = await mkdtemp(join(tmpdir(), "kcore-tutorial-"));
    const [clone, home, codes] = ["clone", "home", "codes"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    await mkdir(home);
    await writeFile(codes, "");
    // The files of a git clone.
    const made = /^(\.git|node_modules|dist|demo|\.kcore)$/;
    await cp(root, clone, { recursive: true, filter: (source) => !made.test(relative(root, source)) });
    terminal = await openShell(
      { cwd: clone, columns: 140, rows: 45 },
      { ...freshEnvironment(home), PROMPT_COMMAND: PageTypist.promptCommand(codes) },
    );
    typist = new PageTypist(page, terminal, codes);
  });
  after(async () => {
    await terminal?.close();
    await (await openLab({ name: labName })).down();
    await rm(folder, { recursive: true, force: true });
  });

  it("deploys a pair on this machine from nothing, and removes everything", async () => {
    const start = Date.now();
    for (const block of readTypedBlocks(page)) await typist.type(block);
    console.log(`      from nothing to nothing in ${Math.round((Date.now() - start) / 1000)} s`);
  });
});

/** A new user's environment, with npm's present registry. */
function freshEnvironment(home: string): Readonly<Record<string, string>> {
  const {
    PATH = "",
    npm_config_userconfig = join(homedir(), ".npmrc"),
    npm_config_cache = join(homedir(), ".npm"),
  } = process.env;
  const path = PATH.split(":")
    .filter((part) => !part.includes("node_modules"))
    .join(":");
  return { HOME: home, PATH: path, KCORE_HOME: "", XDG_CONFIG_HOME: "", npm_config_userconfig, npm_config_cache };
}
