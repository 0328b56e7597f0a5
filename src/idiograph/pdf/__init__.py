"""PDFs to TEI: by GROBID, or by the extractor that comes along."""
