// Package html writes a recorded run as one HTML page that needs no network: what to fix first, a timeline
// with zoom, charts, and tables that the reader can sort and filter. Numbers come from package analyze,
// tables and sentences from package report. So the page, the screen and the commands show the same.
//
// The same trace always gives the same bytes. All text from a trace is escaped, and the page forbids
// scripts and styles other than its own. If scripts are disabled, only the timeline is missing.
package html
