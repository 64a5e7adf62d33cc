"""Sections of a report, one a file, each registered under the name that its task declares."""

from highway_bench.report.sections.base import ReportSection, every_section, register_section, section_of, sections

__all__ = ["ReportSection", "every_section", "register_section", "section_of", "sections"]
