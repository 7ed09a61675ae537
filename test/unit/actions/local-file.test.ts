import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { localFile } from "#actions/local-file.ts";
import { secret } from "#engine/step/secret.ts";
import type { KcoreError } from "#errors/problem.ts";
import { actionContext } from "#support/action-context.ts";

describe("local.file", () => {
  let project: string;
  beforeEach(async () => {
    project = await mkdtemp(join(tmpdir(), "kcore-local-"));
  });
  afterEach(() => rm(project, { recursive: true, force: true }));

  const act = async (kind: "run" | "plan", args: Record<string, unknown>) => {
    const context = actionContext({ project, dryRun: kind === "plan" });
    const result = await localFile[kind](localFile.args.parse(args), context);
    return { result, notes: context.notes };
  };
  const file = (): Promise<string> => readFile(join(project, "kept/admin.conf"), "utf8");
  const admin = { path: "kept/admin.conf", content: secret("a key\n") };

  it("makes the file with its folders, private unless told otherwise, and shows no content", async () => {
    const { result, notes } = await act("run", admin);
    expect(result).to.deep.equal({ changed: true, outputs: {} });
    expect(notes).to.deep.equal(["wrote kept/admin.conf"]);
    expect(await file()).to.equal("a key\n");
    expect((await stat(join(project, admin.path))).mode & 0o777).to.equal(0o600);
  });

  it("leaves a file alone that is as it should be", async () => {
    await act("run", admin);
    for (const kind of ["run", "plan"] as const)
      expect((await act(kind, admin)).result).to.deep.equal({ changed: false, outputs: {} });
  });

  it("mends content and mode, a dry run only says so", async () => {
    await act("run", admin);
    await writeFile(join(project, admin.path), "other");
    expect(await act("plan", admin)).to.deep.include({ notes: ["would write kept/admin.conf"] });
    expect(await file()).to.equal("other");
    await act("run", { ...admin, mode: "0640" });
    expect(await file()).to.equal("a key\n");
    expect((await stat(join(project, admin.path))).mode & 0o777).to.equal(0o640);
  });

  it("takes the place of a link instead of writing where it leads to", async () => {
    await writeFile(join(project, "elsewhere"), "theirs");
    await symlink("elsewhere", join(project, "mine"));
    await act("run", { path: "mine", content: "mine" });
    expect(await readFile(join(project, "elsewhere"), "utf8")).to.equal("theirs");
    expect(await readFile(join(project, "mine"), "utf8")).to.equal("mine");
  });

  it("refuses a folder", async () => {
    await mkdir(join(project, "kept"));
    const refusal: unknown = await act("plan", { path: "kept", content: "" }).catch((error: unknown) => error);
    expect((refusal as KcoreError).problems.map(({ code }) => code)).to.deep.equal(["FILE_IN_THE_WAY"]);
  });

  it("refuses a path out of the project", () => {
    for (const path of ["/etc/passwd", "../x", "a/../../x"])
      expect(localFile.args.safeParse({ path, content: "" }).success, path).to.equal(false);
  });
});
