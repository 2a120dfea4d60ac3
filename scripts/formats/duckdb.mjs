// Runs SQL statements in DuckDB, in the current folder. The standard input is a JSON list of statements. For
// each of them it prints one line of JSON: the list of rows, each an object. Numbers of more than 53 bits are
// text.
//
// The exit status is 1 if a statement fails.
import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";

const db = await (await DuckDBInstance.create(":memory:")).connect();
for (const statement of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    console.log(JSON.stringify((await db.runAndReadAll(statement)).getRowObjectsJson()));
  } catch (e) {
    console.error(`duckdb: ${e.message}\n${statement}`);
    process.exit(1);
  }
}
