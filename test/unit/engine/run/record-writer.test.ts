import { mkdirSync, readFileSync } from "node:fs";
import { expect } from "chai";
import { RecordWriter } from "#engine/run/record-writer.ts";
import { runFolder } from "#engine/run/run-folder.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("RecordWriter", () => {
  const at = folderOfEachTest("record");

  const open = () => {
    const folder = runFolder(at(), "20261122-120000-0000");
    mkdirSync(folder.path, { recursive: true });
    const written: { text: string; at: number }[] = [];
    const record = new RecordWriter({
      folder,
      now: () => 7,
      onWritten: (bytes, at) => written.push({ text: bytes.toString(), at }),
      onError: (error) => {
        throw error;
      },
    });
    return { folder, record, written };
  };
  const line = (seq: number, stage: string) => `{"seq":${seq},"at":7,"type":"stage.started","stage":"${stage}"}\n`;

  it("writes the events of one turn by one write", async () => {
    const { folder, record, written } = open();
    for (const stage of ["a", "b", "c"]) record.append({ type: "stage.started", stage });
    await Promise.resolve();
    const first = `${line(1, "a")}${line(2, "b")}${line(3, "c")}`;
    expect(written).to.deep.equal([{ text: first, at: 0 }]);
    record.append({ type: "stage.started", stage: "d" });
    record.close();
    expect(written.slice(1)).to.deep.equal([{ text: line(4, "d"), at: first.length }]);
    expect(readFileSync(folder.events, "utf8")).to.equal(`${first}${line(4, "d")}`);
  });
});
